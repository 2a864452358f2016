# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# The gem, built and installed into a place of its own, and started from there.
class GemTest < ServerCase
  HELLO = 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["hello from #{Dir.pwd}"]] })'

  class << self
    # Compiling takes its time: once for all tests.
    def home
      @home ||= install(Dir.mktmpdir("leat-gem")).tap { |home| Minitest.after_run { FileUtils.rm_rf(home) } }
    end

    def installed = File.join(home, "gems/leat-#{version}")

    def version = File.read(File.join(ServerCase::ROOT, "lib/leat/version.rb"))[/VERSION = "(.*?)"/, 1]

    private

    def install(home)
      package = File.join(home, "leat.gem")
      succeed("gem", "build", "leat.gemspec", "-o", package, dir: ServerCase::ROOT)
      succeed("gem", "install", "--local", "--no-document", "--install-dir", home, package, dir: "/")
      home
    end

    def succeed(*command, dir:)
      out, status = Open3.capture2e({ "RUBYOPT" => nil, "LEAT_BINARY" => nil }, *command, chdir: dir)
      raise "#{command.join(" ")}:\n#{out}" unless status.success?
    end
  end

  # Where the installed command is found, as it would be in a shell.
  def environment
    paths = [GemTest.home, *Gem.path].join(File::PATH_SEPARATOR)
    { "GEM_HOME" => GemTest.home, "GEM_PATH" => paths, "LEAT_BINARY" => nil, "LEAT_RUBY" => nil, "LEAT_LIB" => nil }
  end

  def binary = File.join(GemTest.home, "bin/leat")

  def find_tool(name)
    ENV.fetch("PATH").split(File::PATH_SEPARATOR).map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  def test_the_installed_command_knows_its_version
    out, code = leat("version", env: environment, dir: "/")
    assert_equal ["leat #{GemTest.version}\n", 0], [out, code]
  end

  def test_it_serves_a_folder_from_another_one_with_its_own_binary_and_extension
    write "shop/config.ru", HELLO
    server = start("../shop", env: environment, dir: File.join(@dir, "shop"))
    assert_equal "hello from #{@dir}/shop", get(server, "/").body
    assert_equal File.join(GemTest.installed, "build/leat"), File.readlink("/proc/#{server.pid}/exe")
    maps = File.read("/proc/#{workers(server).first}/maps")
    assert_includes maps, File.join(GemTest.home, ""), "the worker's extension"
    refute_includes maps, File.join(ROOT, "lib/"), "the worker's extension"
    assert_equal 0, stop(server)
  end

  def test_only_what_is_needed_is_left
    assert_equal ["leat"], Dir.children(File.join(GemTest.installed, "build"))
    assert_path_exists File.join(GemTest.installed, "LICENSE")
  end

  # RubyGems can be told to keep compiled files apart from the gem's own.
  def test_an_extension_that_is_kept_apart_is_found
    beside = Dir[File.join(GemTest.installed, "lib/leat/*/leat_ext.so")].first
    File.rename(beside, "#{beside}.away")
    write "config.ru", HELLO
    assert_equal "hello from #{@dir}", get(start(env: environment), "/").body
  ensure
    File.rename("#{beside}.away", beside)
  end

  def test_what_is_missing_is_named_in_one_line
    tools = File.join(@dir, "tools")
    FileUtils.mkdir_p([tools, File.join(@dir, "gem")])
    %w[sh make pkg-config].each { |name| File.symlink(find_tool(name), File.join(tools, name)) }
    FileUtils.cp_r([File.join(ROOT, "ext"), File.join(ROOT, "src")], File.join(@dir, "gem"))
    out, status = Open3.capture2e({ "PATH" => tools }, RbConfig.ruby, "extconf.rb", chdir: File.join(@dir, "gem/ext/leat"))
    refute status.success?
    line = out.lines.grep(/not found/)
    assert_equal 1, line.size, out
    assert_match(/leat: gcc, ragel not found\..* apt-get install gcc libc6-dev ragel /, line.first)
  end
end
