# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Verbs, options, the configuration file, PID files.
class CliTest < ServerCase
  UP = 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["up"]] })'

  def setup
    super
    app UP
  end

  def teardown
    leat("stop", "--now") if File.exist?(File.join(@dir, "tmp/pids/leat.pid"))
  ensure
    super
  end

  def daemon(*options)
    FileUtils.mkdir_p(File.join(@dir, "tmp/pids"))
    port = free_port
    out, code = leat("start", "-d", "-p", port, *options)
    [port, out, code]
  end

  def test_d_returns_when_ready_and_stop_ends_it
    port, out, code = daemon
    assert_equal 0, code, out
    assert_equal "up", Net::HTTP.get(URI("http://127.0.0.1:#{port}/"))
    out, code = leat("status")
    assert_equal 0, code, out
    assert_match(/up/, out)
    assert_equal 0, leat("healthcheck").last
    assert_equal 0, leat("stop").last
    assert_equal 3, leat("status").last
    out, code = leat("stop")
    assert_equal 0, code
    assert_match(/not running/, out)
    refute File.exist?(File.join(@dir, "tmp/pids/leat.pid"))
  end

  def test_status_json_has_the_names_of_the_contract
    daemon("-e", "production", "-w", "2", "-t", "3")
    status = eventually(10, "both workers serve") do
      out, code = leat("status", "--json")
      assert_equal 0, code, out
      JSON.parse(out).then { |now| now if now["pools"][0]["slots"]["total"] == 6 }
    end
    assert_equal %w[connections environment fronts generation listeners pid pools requests uptime_s version], status.keys.sort
    pool = status["pools"].first
    assert_equal %w[exits generation kind max min molds name queue release ruby slots state streams workers].sort, (pool.keys | ["generation"]).sort
    assert_equal({ "busy" => 0, "total" => 6 }, pool["slots"])
    assert_equal %w[age_s busy current generation pid private_dirty_bytes pss_bytes release requests rss_bytes state threads],
                 pool["workers"].first.keys.sort
    assert_equal %w[crash idle killed max_requests memory normal timeout], pool["exits"].keys.sort
    assert_equal %w[abandoned expired length limit oldest_ms shed], pool["queue"].keys.sort
  end

  ["", "0\n", "garbage\n", "-1\n", "999999999999\n"].each_with_index do |content, index|
    define_method("test_a_stale_pid_file_never_blocks_#{index}") do
      write "tmp/pids/leat.pid", content
      port, out, code = daemon
      assert_equal 0, code, out
      assert_match(/\A\d+\n\z/, File.read(File.join(@dir, "tmp/pids/leat.pid")))
      assert_equal "up", Net::HTTP.get(URI("http://127.0.0.1:#{port}/"))
    end
  end

  def test_a_foreign_process_in_the_pid_file_lives_on_and_blocks_nothing
    foreign = spawn_child("sleep", "60")
    write "tmp/pids/leat.pid", "#{foreign}\n"
    _, out, code = daemon
    assert_equal 0, code, out
    refute gone?(foreign)
    refute_equal foreign, File.read(File.join(@dir, "tmp/pids/leat.pid")).to_i
  end

  def test_a_second_start_names_the_running_one
    daemon
    running = File.read(File.join(@dir, "tmp/pids/leat.pid")).to_i
    out, code = leat("start", "-p", free_port)
    assert_equal 1, code
    assert_includes out, running.to_s
  end

  def test_a_taken_port_is_one_clear_message
    taken = TCPServer.new("127.0.0.1", 0)
    out, code = leat("start", "-b", "127.0.0.1:#{taken.addr[1]}", "-e", "production")
    assert_equal 1, code
    assert_match(/#{taken.addr[1]}.*(in use|listening)/i, out)
    refute_match(/config\.ru.*up/, out)
  ensure
    taken.close
  end

  def test_an_application_that_raises_fails_with_class_message_and_line
    app "\nraise ArgumentError, 'no database here'\n"
    out, code = leat("start", "-d", "-e", "production", "-p", free_port)
    assert_equal 1, code
    assert_match(/ArgumentError/, out)
    assert_match(/no database here/, out)
    assert_match(/config\.ru:2/, out)
  end

  def test_every_error_of_a_file_is_shown_with_place_and_nearest_key
    config "lissten: 80\nworkers: two\ntimeouts: {heder: 3s}\n"
    %w[check start].each do |verb|
      out, code = leat(verb)
      assert_equal 1, code
      assert_match(/leat\.yml:1:1: .*lissten.*listen/, out)
      assert_match(/leat\.yml:2:10: .*workers/, out)
      assert_match(/leat\.yml:3:12: .*heder.*header/, out)
    end
  end

  def test_an_unknown_verb_is_exit_2_with_the_nearest
    out, code = leat("statsu")
    assert_equal 2, code
    assert_match(/status/, out)
  end

  def test_a_folder_without_an_application_says_what_was_looked_for
    empty = File.join(@dir, "empty")
    Dir.mkdir(empty)
    out, code = leat("start", dir: empty)
    assert_equal 1, code
    assert_match(/config\.ru/, out)
    assert_match(/public/, out)
  end

  def test_a_named_rackup_file_wins
    app 'run(proc { |_env| [200, {}, ["admin"]] })', path: "admin.ru"
    File.delete(File.join(@dir, "config.ru"))
    server = start("admin.ru")
    assert_equal "admin", get(server, "/").body
  end

  def test_a_folder_of_files_is_served_without_ruby
    File.delete(File.join(@dir, "config.ru"))
    write "index.html", "<p>static"
    server = start
    assert_equal "<p>static", get(server, "/").body
    assert_equal "404", get(server, "/none").code
    assert_empty workers(server)
  end

  def test_print_says_where_each_value_came_from
    config "threads: 7\n"
    out, code = leat("print", "-w", "3", env: { "PORT" => "4321" })
    assert_equal 0, code, out
    assert_match(/threads.*7.*leat\.yml:1/, out)
    assert_match(/workers.*3.*-w/, out)
    assert_match(/4321.*PORT/, out)
  end

  def test_missing_folders_of_named_paths_are_made
    config "pid: run/deep/leat.pid\nlog: log/deep/leat.log\n"
    server = start
    assert File.exist?(File.join(@dir, "run/deep/leat.pid"))
    assert File.exist?(File.join(@dir, "log/deep/leat.log"))
    stop(server)
  end

  def test_a_left_unix_socket_is_replaced_and_an_ordinary_file_is_not
    config %(listen: ["unix:run/leat.sock"]\n)
    server = start(:no_port)
    Process.kill("KILL", server.pid)
    Process.wait(server.pid)
    server = start(:no_port)
    UNIXSocket.open(File.join(@dir, "run/leat.sock")) do |socket|
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal "up", read_reply(socket).body
    end
    assert_equal "140666", File.stat(File.join(@dir, "run/leat.sock")).mode.to_s(8)
    stop(server)
    refute File.exist?(File.join(@dir, "run/leat.sock"))
    write "run/leat.sock", "precious"
    out, code = leat("start")
    assert_equal 1, code
    assert_match(/leat\.sock/, out)
    assert_equal "precious", File.read(File.join(@dir, "run/leat.sock"))
  end
end
