# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What the figures were measured on, the scratch folder, and the programs built for the bench.

require "etc"
require "fiddle"
require "fileutils"
require "tmpdir"

module Machine
  BENCH = File.expand_path("..", __dir__)
  ROOT = File.expand_path("..", BENCH)
  SCRATCH = Dir.mktmpdir("leat-bench-")
  LEAT = ENV.fetch("LEAT_BINARY", File.join(ROOT, "build/leat"))
  SITE = File.join(BENCH, "apps/site") # a folder of files only
  PUBLIC = File.join(SITE, "public")
  SUBREAPER = 36 # PR_SET_CHILD_SUBREAPER: what a peer leaves behind comes back to us

  module_function

  def prepare
    abort "bench/run: #{LEAT} is missing; run make first" unless File.executable?(LEAT)
    at_exit { FileUtils.rm_rf(SCRATCH) }
    File.chmod(0o755, SCRATCH)
    become_subreaper
    make_files
    build("bare")
  end

  def become_subreaper
    long = Fiddle::TYPE_LONG
    prctl = Fiddle::Function.new(Fiddle.dlopen(nil)["prctl"], [Fiddle::TYPE_INT, long, long, long, long], Fiddle::TYPE_INT)
    prctl.call(SUBREAPER, 1, 0, 0, 0)
  end

  def make_files
    FileUtils.mkdir_p(PUBLIC)
    FileUtils.mkdir_p(File.join(BENCH, "apps/public")) # where requests for the application are looked for first
    { "1k.txt" => 1024, "100k.bin" => 100 * 1024 }.each do |name, size|
      file = File.join(PUBLIC, name)
      File.binwrite(file, Random.new(size).bytes(size)) unless File.exist?(file)
    end
  end

  def build(name)
    source = File.join(BENCH, "load/#{name}.c")
    system("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-o", program(name), source) or abort "bench/run: #{source}"
  end

  def program(name) = File.join(SCRATCH, name)

  def version(*command)
    IO.popen(command, err: %i[child out], &:read)[/\d+(\.\d+)+/] || "?"
  rescue Errno::ENOENT
    "missing"
  end

  def facts
    cpu = File.read("/proc/cpuinfo")[/^model name\s*:\s*(.*)$/, 1] || RUBY_PLATFORM
    {
      "processors" => "#{Etc.nprocessors} × #{cpu}, shared by server and load generator",
      "system" => "#{File.read('/etc/os-release')[/^PRETTY_NAME="(.*)"/, 1]}, Linux #{Etc.uname[:release]}",
      "ruby" => RUBY_VERSION,
      "leat" => `git -C #{ROOT} describe --always --dirty 2>/dev/null`.strip,
      "others" => %w[puma unicorn iodine agoo].map { |gem| "#{gem} #{gem_version(gem)}" }.join(", ") +
        ", nginx #{version('nginx', '-v')}, lighttpd #{version('lighttpd', '-v')}"
    }
  end

  def gem_version(name)
    Gem::Specification.find_all_by_name(name).map(&:version).max || "missing"
  end
end
