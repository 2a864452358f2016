# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Any process may die at any moment.
class ProcessesTest < ServerCase
  PID = 'run(proc { |env| sleep(env["QUERY_STRING"].to_f) unless env["QUERY_STRING"].empty?; [200, {"content-type" => "text/plain"}, [Process.pid.to_s]] })'

  def setup
    super
    app PID
  end

  def test_a_killed_worker_is_replaced_within_a_second
    server = start("-e", "production", "-w", "2", "-t", "1")
    before = workers(server)
    assert_equal 2, before.size
    Process.kill("KILL", before.first)
    eventually(1.5, "two workers again") { workers(server).size == 2 && !workers(server).include?(before.first) }
    10.times { assert_equal "200", get(server, "/").code }
  end

  def test_2000_requests_with_a_worker_killed_in_the_middle_lose_none
    server = start("-e", "production", "-w", "2", "-t", "2")
    done = Queue.new
    clients = 8.times.map do
      Thread.new do
        Net::HTTP.start("127.0.0.1", server.port) do |client|
          250.times { done << client.get("/").code }
        end
      end
    end
    eventually(20, "some requests are done") { done.size > 500 }
    Process.kill("KILL", workers(server).first)
    clients.each(&:join)
    codes = Array.new(done.size) { done.pop }
    assert_equal({ "200" => 2000 }, codes.tally)
  end

  def test_a_get_is_run_again_and_a_post_gets_502
    app <<~RUBY
      run(proc { |env|
        File.open("runs", "a") { |file| file.puts env["REQUEST_METHOD"] }
        Process.kill(:KILL, Process.pid) if env["PATH_INFO"] == "/die" && File.read("runs").lines.count("\#{env["REQUEST_METHOD"]}\n") == 1
        [200, {}, ["lived"]]
      })
    RUBY
    server = start("-e", "production", "-w", "1", "-t", "1")
    assert_equal "lived", get(server, "/die").body
    assert_equal "502", http(server, "/die", method: "POST", body: "x").code
    assert_equal %w[GET GET POST], File.readlines(File.join(@dir, "runs"), chomp: true)
  end

  def test_a_request_that_kills_two_workers_ends_there
    app 'run(proc { |env| Process.kill(:KILL, Process.pid) if env["PATH_INFO"] == "/die"; [200, {}, ["ok"]] })'
    server = start("-e", "production", "-w", "2", "-t", "1")
    assert_equal "502", get(server, "/die").code
    assert_equal "200", get(server, "/").code
    assert_match(/\/die/, server.output)
  end

  def test_a_dead_front_is_replaced_on_the_same_listeners_and_workers_live_on
    server = start("-e", "production", "-w", "2")
    before = workers(server)
    front = processes(server, "front").first
    Process.kill("KILL", front)
    eventually(1.5, "a new front") { (processes(server, "front") - [front]).any? }
    assert_equal "200", get(server, "/").code
    assert_equal before.sort, workers(server).sort
  end

  def test_a_dead_mold_is_loaded_again
    server = start("-e", "production", "-w", "1")
    mold = processes(server, "mold").first
    Process.kill("KILL", mold)
    eventually(10, "a new mold") { (processes(server, "mold") - [mold]).any? }
    Process.kill("KILL", workers(server).first)
    eventually(10, "served again") { get(server, "/").code == "200" }
  end

  def test_nothing_outlives_a_killed_master
    server = start("-e", "production", "-w", "2")
    all = children_of(server.pid).map(&:first)
    client = Thread.new { get(server, "/?5") rescue nil }
    eventually { status(server)["pools"][0]["slots"]["busy"] == 1 }
    assert_operator all.size, :>=, 4
    Process.kill("KILL", server.pid)
    Process.wait(server.pid)
    eventually(2, "all gone") { all.all? { |pid| gone?(pid) } }
    client.join
    again = start("-e", "production", "-w", "1")
    assert_equal "200", get(again, "/").code
  end

  def test_stop_loses_no_accepted_request
    server = start("-e", "production", "-w", "2", "-t", "2")
    clients = 8.times.map { Thread.new { get(server, "/?0.5").code } }
    eventually { (slots = status(server)["pools"][0]).then { |pool| pool["slots"]["busy"] + pool["queue"]["length"] == 8 } }
    assert_equal 0, stop(server)
    assert_equal ["200"] * 8, clients.map(&:value)
    refute File.exist?(File.join(@dir, "tmp/pids/leat.pid"))
  end

  def test_int_and_quit_exit_zero_and_a_cut_request_gives_four
    config "timeouts: {drain: 300ms}\n"
    assert_equal 0, stop(start, "INT")
    assert_equal 0, stop(start, "QUIT")
    server = start("-e", "production", "-w", "1", "-t", "1")
    client = Thread.new { get(server, "/?20").code rescue "cut" }
    eventually { status(server)["pools"][0]["slots"]["busy"] == 1 }
    assert_equal 4, stop(server)
    refute_equal "200", client.value
  end

  def test_restart_serves_new_code_and_a_broken_release_leaves_the_old
    write "VERSION", "1"
    app 'V = File.read("VERSION"); raise "no database" if V == "broken"; run(proc { |_env| [200, {}, [V]] })'
    server = start("-e", "production", "-w", "2", "-P", "leat.pid")
    write "VERSION", "2"
    out, code = leat("restart", "-P", "leat.pid")
    assert_equal 0, code, out
    10.times { assert_equal "2", get(server, "/").body }
    write "VERSION", "broken"
    out, code = leat("restart", "-P", "leat.pid")
    assert_equal 1, code
    assert_match(/RuntimeError.*no database/m, out)
    assert_match(/config\.ru:1/, out)
    10.times { assert_equal "2", get(server, "/").body }
    write "VERSION", "3"
    Process.kill("USR1", server.pid)
    eventually(15, "USR1 restarts") { get(server, "/").body == "3" }
  end

  def test_a_swapped_symlink_is_seen_by_restart_only
    %w[1 2].each do |number|
      write "releases/#{number}/config.ru", 'v = File.read(File.expand_path("VERSION", __dir__)); run(proc { |_env| [200, {}, [v]] })'
      write "releases/#{number}/VERSION", number
    end
    current = File.join(@dir, "current")
    File.symlink("releases/1", current)
    server = start("-e", "production", "-w", "2", "-P", File.join(@dir, "leat.pid"), current)
    assert_equal "1", get(server, "/").body
    File.symlink("releases/2", "#{current}.new")
    File.rename("#{current}.new", current)
    Process.kill("KILL", workers(server).first)
    eventually { workers(server).size == 2 }
    10.times { assert_equal "1", get(server, "/").body }
    out, code = leat("restart", "-P", File.join(@dir, "leat.pid"))
    assert_equal 0, code, out
    10.times { assert_equal "2", get(server, "/").body }
    Process.kill("KILL", workers(server).first)
    eventually { workers(server).size == 2 }
    10.times { assert_equal "2", get(server, "/").body }
  end

  def test_every_signal_is_harmless_or_means_something
    server = start("-e", "production", "-w", "1")
    %w[HUP USR2 TTIN TTOU WINCH CONT PIPE ALRM URG].each do |signal|
      Process.kill(signal, server.pid)
      assert_equal "200", get(server, "/").code, "after #{signal}"
    end
  end

  def test_an_application_that_exits_or_raises_anything_gets_a_visible_error
    app <<~RUBY
      run(proc { |env|
        case env["PATH_INFO"]
        when "/raise" then raise Exception, "all of it"
        when "/exit" then exit
        when "/abort" then abort
        when "/throw" then throw :nothing
        when "/kill" then Thread.current.kill
        when "/deep" then (f = proc { f.call }).call
        when "/bang" then exit!(3)
        when "/nil" then nil
        when "/zero" then [0, {}, []]
        else [200, {}, ["fine"]]
        end
      })
    RUBY
    server = start("-e", "production", "-w", "1", "-t", "2")
    %w[/raise /exit /abort /throw /kill /deep /bang /nil /zero].each do |path|
      assert_includes %w[500 502], http(server, path, method: "POST", body: "").code, path
      eventually(5, "served after #{path}") { get(server, "/").body == "fine" }
    end
  end

  def test_a_forked_child_of_the_application_cannot_answer
    app <<~RUBY
      run(proc { |env|
        if env["PATH_INFO"] == "/fork"
          fork { sleep 0.2 } # the block ends: at_exit handlers run in the child
          pid = fork
          pid ? [200, {}, ["parent"]] : [200, {}, ["child"]]
        else
          [200, {}, ["ok"]]
        end
      })
    RUBY
    server = start("-e", "production", "-w", "1", "-t", "1")
    3.times { assert_equal "parent", get(server, "/fork").body }
    10.times { assert_equal "ok", get(server, "/").body }
  end
end
