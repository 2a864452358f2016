# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# What people are used to: variables of the platform, a Procfile, a link named current, Bundler's own
# place for gems.
class HabitsTest < ServerCase
  UP = <<~'RUBY'
    run(proc { |env| [200, {"content-type" => "text/plain"}, ["#{Dir.pwd} #{ENV["RAILS_MAX_THREADS"]} #{ENV["RACK_ENV"]}"]] })
  RUBY

  def setup
    super
    app UP
  end

  def test_the_variables_of_a_platform
    port = free_port
    variables = { "PORT" => port.to_s, "BINDING" => "127.0.0.1", "WEB_CONCURRENCY" => "2", "RAILS_MAX_THREADS" => "4",
                  "PIDFILE" => "run/web.pid", "RACK_ENV" => "production" }
    server = start(:no_port, env: variables)
    at = Server.new(server.pid, @dir, port, server.out)
    assert_equal "#{@dir} 4 production", get(at, "/").body
    assert_equal ["127.0.0.1:#{port}"], status(at)["listeners"].map { |one| one["address"] }
    eventually { pool(at)["slots"]["total"] == 8 }
    assert_equal server.pid, File.read(File.join(@dir, "run/web.pid")).to_i
    assert_equal 0, stop(server)
    refute_path_exists File.join(@dir, "run/web.pid")
  end

  def test_empty_variables_count_as_unset
    server = start(env: { "WEB_CONCURRENCY" => "", "RAILS_MAX_THREADS" => "", "PIDFILE" => "", "BINDING" => "" })
    assert_equal "#{@dir} 3 development", get(server, "/").body
  end

  def test_a_variable_that_makes_no_sense_is_named
    out, code = leat("start", env: { "WEB_CONCURRENCY" => "many", "PORT" => "http" })
    assert_equal 1, code
    assert_match(/WEB_CONCURRENCY/, out)
    assert_match(/PORT/, out)
  end

  # As foreman and its kind do: a shell, PORT, a signal to the shell's child.
  def test_the_line_of_a_procfile
    port = free_port
    write "Procfile", "web: leat -p $PORT -e production\n"
    line = File.read(File.join(@dir, "Procfile"))[/\Aweb: (.*)/, 1].sub("leat", BINARY)
    out = File.join(@dir, "output")
    pid = Process.spawn(clean_env.merge("PORT" => port.to_s), "sh", "-c", "exec #{line}", chdir: @dir, out: out, err: [:child, :out], in: "/dev/null")
    server = Server.new(pid, @dir, port, out).tap { |one| @servers << one }
    wait_ready(server)
    assert_equal "#{@dir} 3 production", get(server, "/").body
    assert_equal 0, stop(server)
  end

  def test_the_bare_command_serves_the_folder_it_is_called_in
    port = free_port
    out = File.join(@dir, "output")
    pid = Process.spawn(clean_env.merge("PORT" => port.to_s), BINARY, chdir: @dir, out: out, err: [:child, :out], in: "/dev/null")
    server = Server.new(pid, @dir, port, out).tap { |one| @servers << one }
    wait_ready(server)
    assert_equal "200", get(server, "/").code
    assert_match(%r{http://localhost:#{port}$}, server.output)
  end

  def test_a_link_named_current_leads_to_the_new_release
    %w[1 2].each { |number| write("releases/#{number}/config.ru", UP) }
    current = File.join(@dir, "current")
    File.symlink("releases/1", current)
    server = start("-e", "production", "-w", "1", env: { "PWD" => current }, dir: current)
    assert_match(%r{/releases/1 }, get(server, "/").body)
    File.symlink("releases/2", "#{current}.new")
    File.rename("#{current}.new", current)
    out, code = leat("restart", env: { "PWD" => current }, dir: current)
    assert_equal 0, code, out
    assert_match(%r{/releases/2 }, get(server, "/").body)
    FileUtils.rm_rf(File.join(@dir, "releases/1"))
    assert_equal 0, leat("status", current, dir: "/").last
    assert_equal 0, leat("stop", current, dir: "/").last
    assert_equal 0, wait_exit(server.pid)
  end

  # A gem that is nowhere else, and Rack, in the place that Bundler's settings name.
  def write_bundle
    write "tiny.gemspec", 'Gem::Specification.new { |s| s.name = "tiny"; s.version = "1.2.3"; s.summary = s.author = "tiny"; s.files = ["lib/tiny.rb"] }'
    write "lib/tiny.rb", "module Tiny; VERSION = '1.2.3'; end\n"
    place = File.join(@dir, "vendor/bundle/ruby", RbConfig::CONFIG["ruby_version"])
    succeed("gem", "build", "tiny.gemspec")
    rack = Gem::Specification.find_all_by_name("rack").map(&:cache_file).find { |file| File.exist?(file) } || "rack"
    succeed("gem", "install", "--no-document", "--install-dir", place, *("--local" if File.exist?(rack)), rack, "tiny-1.2.3.gem")
    %w[tiny.gemspec lib/tiny.rb tiny-1.2.3.gem].each { |name| File.delete(File.join(@dir, name)) }
    write "Gemfile", "source 'https://rubygems.org'\ngem 'rack'\ngem 'tiny', '1.2.3'\n"
    app "require 'bundler'\nBundler.require\nrun(proc { |_env| [200, {}, [[Tiny::VERSION, Gem.loaded_specs['rack'].full_gem_path].join(' ')]] })\n"
  end

  def succeed(*command, env: {})
    out, status = Open3.capture2e(clean_env.merge(env), *command, chdir: @dir)
    assert status.success?, "#{command.join(" ")}: #{out}"
  end

  def test_a_bundle_in_vendor_bundle_by_variables_or_by_its_own_file
    write_bundle
    settings = { "BUNDLE_PATH" => "vendor/bundle", "BUNDLE_DEPLOYMENT" => "true" }
    succeed("bundle", "lock", "--local", env: { "BUNDLE_PATH" => "vendor/bundle" })
    server = start("-e", "production", "-w", "1", env: settings)
    assert_match(%r{\A1\.2\.3 #{@dir}/vendor/bundle/}, get(server, "/").body)
    out, code = leat("restart")
    assert_equal 0, code, out
    assert_match(%r{\A1\.2\.3 }, get(server, "/").body)
    assert_equal 0, stop(server)

    write ".bundle/config", %(---\nBUNDLE_PATH: "vendor/bundle"\nBUNDLE_DEPLOYMENT: "true"\n)
    assert_match(%r{\A1\.2\.3 #{@dir}/vendor/bundle/}, get(start("-e", "production", "-w", "1"), "/").body)
  end

  # `bundle exec leat` in one bundle serves the application of another one.
  def test_the_bundle_of_whoever_starts_it_is_not_the_application_s
    write_bundle
    succeed("bundle", "lock", "--local", env: { "BUNDLE_PATH" => "vendor/bundle" })
    write "tools/Gemfile", ""
    server = start("-e", "production", "-w", "1", env: {
                     "BUNDLE_GEMFILE" => File.join(@dir, "tools/Gemfile"), "RUBYOPT" => "-rbundler/setup", "BUNDLE_PATH" => "vendor/bundle",
                     "BUNDLER_ORIG_BUNDLE_GEMFILE" => "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL",
                     "BUNDLER_ORIG_RUBYOPT" => "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL"
                   })
    assert_match(/\A1\.2\.3 /, get(server, "/").body)
  end
end
