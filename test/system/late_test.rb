# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Requests that take too long, and what a worker says of itself: over `timeout` the client gets 504 at once,
# the log says what the worker was doing, and the worker is replaced without harm to anybody else.
class LateTest < ServerCase
  APP = <<~'RUBY'
    require "fiddle"
    STUCK = Fiddle::Function.new(Fiddle::Handle::DEFAULT["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
    %w[USR1 USR2 QUIT].each { |name| trap(name) { File.write("trapped", name) } } if ENV["TRAPS"]
    run(proc { |env|
      File.write("begun", env["PATH_INFO"]) unless env["PATH_INFO"] == "/"
      case env["PATH_INFO"]
      when "/sleep" then sleep
      when "/loop" then loop {}
      when "/match" then ("a" * 40 + "!").match?(/^(a|a)*$/)
      when "/stuck" then STUCK.call(60)
      when "/short" then sleep 1.4
      when "/queue" then Queue.new.pop
      end
      [200, {"content-type" => "text/plain"}, [Process.pid.to_s]]
    })
  RUBY

  def setup
    super
    app APP
  end

  # A server with that limit; its workers' PIDs.
  def begin_server(*options, limit: "500ms", **rest)
    config "timeout: #{limit}\n"
    server = start("-e", "production", *options, **rest)
    eventually { workers(server).size == options[options.index("-w") + 1].to_i }
    server
  end

  # Lines of the log about a worker.
  def lines(server, pid) = server.output.lines.grep(/ worker #{pid} /)

  def running(server, path)
    asked = Thread.new { get(server, path) }
    eventually { File.read(File.join(@dir, "begun")) == path rescue false }
    asked
  end

  def test_over_timeout_there_is_504_a_backtrace_and_another_worker
    server = begin_server("-w", "2", "-t", "1")
    { "/sleep" => /config\.ru:7:in `sleep'/, "/loop" => /config\.ru:8/, "/match" => /config\.ru:9:in `match\?'/, "/queue" => /config\.ru:12:in `pop'/ }.each do |path, place|
      before = workers(server)
      with_witness(server) { assert_equal "504", http(server, path, headers: { "X-Request-Id" => "id-of#{path.tr('/', '-')}" }).code }
      eventually(10, "one is replaced") { workers(server).size == 2 && (before - workers(server)).size == 1 }
      late = (before - workers(server)).first
      assert_equal 1, (workers(server) - before).size
      id = server.output[/answered 504 id=(\S+) GET #{path}$/, 1]
      assert_match(/ran into timeout \(0\.5 s\): GET #{path} id=#{id}; /, lines(server, late).join)
      assert_match(/thread "leat 0" \(\w+\): request id=#{id} for [\d.]+ s: .*#{place}/, lines(server, late).join)
      eventually(5) { lines(server, late).join.include?("ended: reason=timeout") }
    end
    assert_equal 4, pool(server)["exits"]["timeout"]
    assert_equal 4, pool(server)["exits"].values.sum
  end

  def test_a_worker_that_cannot_speak_is_described_by_the_kernel
    server = begin_server("-w", "2", "-t", "1")
    before = workers(server)
    with_witness(server) { assert_equal "504", get(server, "/stuck").code }
    eventually(15, "it is replaced") { (before - workers(server)).size == 1 && workers(server).size == 2 }
    text = lines(server, (before - workers(server)).first).join
    assert_match(/gave no answer/, text)
    assert_match(/thread "leat 0": sleeping.*clock_nanosleep\(/, text)
  end

  def test_a_stopped_worker_is_described_and_killed
    server = begin_server("-w", "2", "-t", "1", limit: "1s")
    before = workers(server)
    with_witness(server) do
      asked = running(server, "/sleep")
      late = pool(server)["workers"].find { |worker| worker["busy"] == 1 }["pid"]
      Process.kill("STOP", late)
      assert_equal "504", asked.value.code
      eventually(15, "it is replaced") { gone?(late) && workers(server).size == 2 }
      assert_match(/thread "leat 0": stopped by a signal/, lines(server, late).join)
    end
    assert_equal 1, (before & workers(server)).size
  end

  def test_an_idle_worker_that_was_stopped_does_not_keep_requests_waiting
    server = begin_server("-w", "1", "-t", "1", limit: "2s")
    worker = workers(server).first
    Process.kill("STOP", worker)
    reply = Timeout.timeout(15) { get(server, "/") }
    assert_equal "200", reply.code
    refute_equal worker.to_s, reply.body
    assert_match(/worker #{worker} was stopped by a signal while requests wait/, server.output)
    Process.kill("CONT", worker)
    eventually(5, "it leaves in order") { gone?(worker) }
    assert_match(/worker #{worker} ended: .*status 0/, server.output)
  end

  def test_innocent_requests_of_the_same_worker_finish_first
    server = begin_server("-w", "1", "-t", "2", limit: "1500ms")
    worker = workers(server).first
    asked = running(server, "/sleep")
    eventually { pool(server)["workers"].first["current"].first["age_ms"] > 700 }
    innocent = running(server, "/short")
    assert_equal "504", asked.value.code
    assert_equal ["200", worker.to_s], innocent.value.then { |reply| [reply.code, reply.body] }
    eventually(5, "it is gone") { gone?(worker) }
    assert_match(/ended: reason=timeout/, lines(server, worker).join)
    assert_equal "200", get(server, "/").code
  end

  def test_streams_of_the_same_worker_have_their_time
    app <<~'RUBY'
      run(proc { |env|
        next (File.write("begun", "/sleep") and sleep) if env["PATH_INFO"] == "/sleep"

        io = env["rack.hijack"].call
        io.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        Thread.new { 30.times { |number| io.write("#{number}\n"); sleep 0.1 }; io.close }
        [200, {}, []]
      })
    RUBY
    server = begin_server("-w", "1", "-t", "2", limit: "500ms")
    worker = workers(server).first
    connect(server) do |socket|
      socket.write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal 200, read_reply(socket, method: "HEAD").status
      assert_equal "504", running(server, "/sleep").value.code
      assert_equal (0..29).map { |number| "#{number}\n" }.join, Timeout.timeout(15) { socket.read }
    end
    eventually(5, "it is gone") { gone?(worker) }
    assert_match(/ended: reason=timeout/, lines(server, worker).join)
  end

  def test_a_worker_says_what_its_threads_do_and_goes_on
    server = begin_server("-w", "1", "-t", "2", "-P", "leat.pid", limit: "30s", env: { "TRAPS" => "1" })
    worker = workers(server).first
    asked = running(server, "/short")
    out, code = leat("backtrace", worker, "-P", "leat.pid")
    assert_equal 0, code, out
    assert_match(/^thread "leat \d" \(sleep\): request id=\S+ for 0\.\d s\n    .*config\.ru:11:in `sleep'\n/, out)
    assert_match(/^thread "leat \d" \(sleep\): waits for a request$/, out)
    asked_too = Array.new(4) { Thread.new { leat("backtrace", worker, "-P", "leat.pid") } }.map(&:value)
    assert_equal [0], asked_too.map(&:last).uniq
    assert_equal worker.to_s, asked.value.body
    assert_equal worker.to_s, get(server, "/").body
    refute_path_exists File.join(@dir, "trapped")
    refute_match(/error|replaced|ended/, server.output)
  end

  def test_a_worker_that_loops_says_where
    server = begin_server("-w", "1", "-t", "2", "-P", "leat.pid", limit: "60s")
    2.times do
      Thread.new { get(server, "/loop") rescue nil }
    end
    eventually { pool(server)["slots"]["busy"] == 2 }
    out, code = leat("backtrace", workers(server).first, "-P", "leat.pid")
    assert_equal 0, code, out
    assert_equal 2, out.scan("config.ru:8").size.clamp(0, 2), out
  end

  def test_a_stuck_worker_is_described_by_the_verb_and_lives_on
    server = begin_server("-w", "1", "-t", "1", "-P", "leat.pid", limit: "60s")
    Thread.new { get(server, "/stuck") rescue nil }
    eventually { pool(server)["slots"]["busy"] == 1 }
    worker = workers(server).first
    out, code = leat("backtrace", worker, "-P", "leat.pid")
    assert_equal 0, code, out
    assert_match(/gave no answer.*thread "leat 0": sleeping/m, out)
    assert_equal [worker], workers(server)
  end

  def test_a_pid_that_is_no_worker_and_a_server_that_is_not_there_are_told_in_words
    server = begin_server("-w", "1", "-P", "leat.pid")
    worker = workers(server).first
    { 1 => "there is no worker 1. Workers now: #{worker}\n", server.pid => /#{server.pid} is the server's main process/,
      processes(server, "front").first => /is a front/, processes(server, "mold").first => /is a mold/ }.each do |pid, words|
      out, code = leat("backtrace", pid, "-P", "leat.pid")
      assert_equal 1, code
      assert_match words, out
    end
    assert_equal 2, leat("backtrace", "-P", "leat.pid").last
    assert_equal 2, leat("backtrace", "one", "-P", "leat.pid").last
    assert_equal 0, stop(server)
    out, code = leat("backtrace", worker, "-P", "leat.pid")
    assert_equal 3, code
    assert_match(/not running/, out)
  end

  def test_a_worker_of_development_says_what_it_does
    server = start("-P", "leat.pid")
    asked = running(server, "/short")
    out, code = leat("backtrace", workers(server).first, "-P", "leat.pid")
    assert_equal 0, code, out
    assert_match(/config\.ru:11:in `sleep'/, out)
    assert_equal "200", asked.value.code
  end

  def test_many_late_requests_fill_neither_log_nor_machine
    server = begin_server("-w", "1", "-t", "8")
    codes = Array.new(8) { Thread.new { get(server, "/sleep").code } }.map(&:value)
    assert_equal ["504"] * 8, codes
    eventually(10) { pool(server)["exits"]["timeout"] >= 1 && pool(server)["slots"]["busy"].zero? }
    assert_equal "200", get(server, "/").code
    assert_operator server.output.lines.size, :<, 60
  end
end
