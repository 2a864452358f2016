# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Files and folders that the configuration names: made where they are missing, one clear error where that
# cannot be, told by `check` as well as by `start`.
class NamedPathsTest < ServerCase
  def setup
    super
    app 'File.write("loaded", "1")
         run(proc { |env| [200, {"content-type" => "text/plain"}, [env["rack.input"].read.bytesize.to_s]] })'
  end

  # The keys, and how `start` and `check` speak of them.
  BAD = { "log" => "/proc/x/y.log", "pid" => "/proc/x.pid", "control" => "/proc/c.sock", "spool" => "/proc/nospool" }.freeze

  def test_what_cannot_be_made_is_refused_by_check_and_by_start_before_the_application_loads
    BAD.each do |key, path|
      config "#{key}: #{path}\n"
      %w[check start].each do |verb|
        out, code = leat(verb, "-e", "production", *(["-p", free_port] if verb == "start"))
        assert_equal 1, code, "#{verb} #{key}: #{out}"
        assert_match(/#{key}: #{path}: \S/, out, verb)
      end
      refute File.exist?(File.join(@dir, "loaded")), key
    end
  end

  def test_check_names_all_at_once_and_makes_nothing
    config BAD.map { |key, path| "#{key}: #{path}\n" }.join
    out, code = leat("check")
    assert_equal 1, code
    BAD.each_key.with_index(1) { |key, line| assert_match(/leat\.yml:#{line}:\d+: #{key}: /, out) }
    config "log: a/b.log\npid: c/d.pid\ncontrol: e/f.sock\nspool: g/h\nlisten: unix:i/j.sock\n"
    out, code = leat("check")
    assert_equal 0, code, out
    %w[a c e g i].each { |name| refute File.exist?(File.join(@dir, name)), name }
  end

  def test_a_missing_spool_folder_is_made
    config "spool: tmp/new/spool\n"
    server = start
    assert_equal "200000", http(server, "/", method: "POST", body: "x" * 200_000).body
    assert File.directory?(File.join(@dir, "tmp/new/spool"))
  end

  def test_without_a_spool_what_memory_has_no_room_for_is_refused_and_told_once
    config "spool: off\n"
    server = start
    3.times { assert_equal "503", http(server, "/", method: "POST", body: "x" * 200_000).code }
    assert_equal "20000", http(server, "/", method: "POST", body: "x" * 20_000).body
    lines = server.output.lines.grep(%r{spool=off a request body over \d+ kB cannot be kept, answered 503 id=\S+ POST /$})
    assert_equal 1, lines.size, server.output
  end

  def test_a_spool_folder_that_goes_is_told_once
    config "spool: spool\n"
    server = start
    Dir.rmdir(File.join(@dir, "spool"))
    3.times { assert_equal "503", http(server, "/", method: "POST", body: "x" * 200_000).code }
    lines = server.output.lines.grep(/spool=\S+ a request body cannot be kept: No such file or directory, answered 503 id=\S+ POST \/$/)
    assert_equal 1, lines.size, server.output
  end

  where root?, "root" do
    # Root would read everything; the front is the owner of config.ru.
    def test_check_walks_the_root_as_the_owner_of_the_application
      File.chmod(0o755, @dir)
      File.chown(65_534, 65_534, File.join(@dir, "config.ru"))
      write "public/a.txt", "a"
      write "public/secret.txt", "s"
      File.chmod(0o600, File.join(@dir, "public/secret.txt"))
      out, code = leat("check")
      assert_equal 1, code, out
      assert_match(%r{root: \S+ cannot read \S+/public/secret\.txt: Permission denied}, out)
      refute_match(/a\.txt/, out)
    end
  end
end
