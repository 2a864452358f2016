# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# The base of the tests of the Ruby side alone: test/unit/ext/fake_front.c plays master and front for one
# worker, so that what the worker puts on its pages is seen as it is, before any HTTP.
require "minitest/autorun"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

class WorkerCase < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  BOOT = File.join(ROOT, "lib/leat/boot.rb")
  FRONT = File.join(ROOT, "build/fake_front")
  SECONDS = 60

  # What a worker answered to one request.
  Answer = Struct.new(:status, :flags, :fields, :parts, :file, :interim, :ending) do
    def body = parts.join
    def field(name) = fields.select { |key, _| key == name }.map(&:last)
    def whole? = ending == "END"
    def cut? = ending == "END cut"
    def stream? = flags.include?("stream")
  end

  # Everything a run of the worker left behind.
  Run = Struct.new(:answers, :reports, :rest, :log)

  def setup
    self.class.build_front
    @dir = Dir.mktmpdir("leat-worker")
  end

  def teardown
    FileUtils.rm_rf(@dir)
  end

  def self.build_front
    sources = [File.join(ROOT, "test/unit/ext/fake_front.c"),
               *%w[base span buf clock fd num ascii].map { |name| File.join(ROOT, "src/base/#{name}.c") },
               *Dir[File.join(ROOT, "src/board/*.c")].sort]
    newest = (sources + Dir[File.join(ROOT, "src/{base,board}/*.{h,def}")]).map { |path| File.mtime(path) }.max
    return if File.exist?(FRONT) && File.mtime(FRONT) > newest

    FileUtils.mkdir_p(File.dirname(FRONT))
    out, status = Open3.capture2e("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-I#{ROOT}/src", "-o", FRONT, *sources)
    raise out unless status.success?
  end

  # Runs the application (the text of a config.ru) under one worker and gives it the requests in order. Each
  # is "METHOD PATH", with more lines for fields and fake_front's pseudo fields.
  def serve(app, *requests, rack: nil, role: "mold", threads: 1, preload: "auto", environment: "production")
    File.write(File.join(@dir, "config.ru"), app)
    File.write(File.join(@dir, "Gemfile"), "source 'https://rubygems.org'\ngem 'rack', '~> #{rack}.0'\n") if rack
    input = requests.map { |request| "#{request}\nhost: example.com\n\n" }.join
    command = ["timeout", SECONDS.to_s, FRONT, RbConfig.ruby, BOOT, @dir, role, threads.to_s, preload, environment]
    out, log, = Open3.capture3(environment_without_bundler, *command, stdin_data: "#{input}@stop\n", binmode: true)
    parse(out, log)
  end

  def environment_without_bundler
    ENV.keys.grep(/\A(BUNDLE|BUNDLER|RUBYOPT|RUBYLIB|GEM_HOME)/).to_h { |name| [name, nil] }
  end

  def parse(out, log)
    reports, lines = out.lines(chomp: true).partition { |line| line.start_with?("+") }
    *answers, rest = lines.join("\n").split(/^---$/, -1)
    Run.new(answers.map { |text| answer(text.strip.lines(chomp: true)) }, reports, rest.to_s, log)
  end

  def answer(lines)
    answer = Answer.new(nil, [], [], [], nil, [], lines.last)
    lines.each do |line|
      case line
      when /\AHEAD (\d+)(.*)/ then answer.status, answer.flags = $1.to_i, $2.split
      when /\AINTERIM (\d+)/ then answer.interim << $1.to_i
      when /\A  (\S+): (.*)/ then answer.fields << [$1, $2]
      when /\ADATA \d+ (.*)/m then answer.parts << $1
      when /\AFILE (.*)/ then answer.file = $1
      end
    end
    answer
  end

  # The first answer to one request.
  def ask(app, request = "GET /", **options) = serve(app, request, **options).answers.first
end
