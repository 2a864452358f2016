# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# How many workers a pool has: on demand, as many as the queue wants, back again when they are idle.
class ScaleTest < ServerCase
  HELD = <<~'RUBY'
    run(proc { |env|
      if env["PATH_INFO"] == "/hold"
        File.open("ran", "a") { |file| file.syswrite("#{Process.pid}\n") }
        sleep 0.02 until File.exist?("open")
      end
      [200, {"content-type" => "text/plain"}, [Process.pid.to_s]]
    })
  RUBY

  def ran = File.exist?(path = File.join(@dir, "ran")) ? File.readlines(path, chomp: true) : []

  def hold(server, count)
    Array.new(count) { Thread.new { get(server, "/hold").code } }
  end

  def let_go(clients)
    write "open", ""
    assert_equal ["200"] * clients.size, clients.map(&:value)
    File.delete(File.join(@dir, "open"))
  end

  def exits(server) = pool(server)["exits"].reject { |_, count| count.zero? }

  # --- on demand

  def test_a_pool_on_demand_starts_with_its_first_request_and_goes_when_it_was_idle
    app "sleep 0.3\n#{HELD}"
    config "workers: 0..2\nidle: 1s\n"
    server = start("-e", "production")
    assert_empty processes(server, "mold") + workers(server)
    assert_equal ["down", 0, 2], pool(server).values_at("state", "min", "max")
    3.times do |round|
      assert_equal "200", get(server, "/").code
      assert_equal ["up", 0, 2], pool(server).values_at("state", "min", "max")
      eventually(15, "nobody is left") { (processes(server, "mold") + workers(server)).empty? && pool(server)["state"] == "down" }
      assert_equal ["idle"], exits(server).keys
      assert_operator exits(server)["idle"], :>, round
    end
    refute_match(/ warn pool|error/, server.output)
  end

  def test_requests_that_come_while_the_application_loads_wait_for_it
    app "sleep 0.5\n#{HELD}"
    config "workers: 0..1\n"
    server = start("-e", "production", "-t", "2")
    answers = Array.new(20) { Thread.new { get(server, "/").code } }.map(&:value)
    assert_equal ["200"] * 20, answers
    assert_equal 1, workers(server).size
  end

  def test_an_application_on_demand_that_does_not_load_is_left_alone_until_somebody_asks
    app "File.open('tries', 'a') { |file| file.syswrite('x') }\nraise 'no database' unless File.exist?('up')\n#{HELD}"
    config "workers: 0..1\nqueue: {timeout: 700ms}\n"
    server = start("-e", "production")
    assert_equal "503", get(server, "/").code
    eventually(10, "it is given up") { pool(server)["state"] == "down" }
    tries = File.size(File.join(@dir, "tries"))
    assert_match(/no database/, pool(server)["error"])
    write "up", ""
    eventually(40, "it heals") { get(server, "/").code == "200" }
    assert_equal tries + 1, File.size(File.join(@dir, "tries"))
    assert_nil pool(server)["error"]
  end

  # --- up and down

  def test_a_queue_that_stands_gets_more_workers_up_to_max_and_idle_ones_go
    app HELD
    config "workers: 1..4\nthreads: 1\nidle: 1s\n"
    server = start("-e", "production")
    assert_equal 1, workers(server).size
    held = hold(server, 6)
    eventually(15, "four workers are held") { ran.size == 4 }
    assert_equal 4, ran.uniq.size
    eventually(5, "two wait") { pool(server)["queue"]["length"] == 2 }
    let_go(held)
    eventually(20, "one is left") { workers(server).size == 1 && exits(server) == { "idle" => 3 } }
    assert_equal ["up", 1, 4], pool(server).values_at("state", "min", "max")
    assert_equal "200", get(server, "/").code
  end

  def test_a_worker_that_is_not_idle_stays
    app HELD
    config "workers: 1..2\nthreads: 1\nidle: 500ms\n"
    server = start("-e", "production")
    held = hold(server, 2)
    eventually(15, "two are held") { ran.size == 2 }
    # They are busy for longer than a worker may be idle.
    begun = now
    eventually(5) { now - begun > 1.2 }
    assert_equal 2, workers(server).size
    let_go(held)
    eventually(20, "one is left") { workers(server).size == 1 }
  end

  def test_a_worker_that_holds_a_stream_stays
    app <<~'RUBY'
      run(proc { |env|
        if env["PATH_INFO"] == "/stream"
          io = env["rack.hijack"].call
          io.write("HTTP/1.1 200 OK\r\n\r\nopen")
          Thread.new { io.read && io.close }
          [200, {}, []]
        else
          [200, {"content-type" => "text/plain"}, ["ok"]]
        end
      })
    RUBY
    config "workers: 0..1\nidle: 500ms\n"
    server = start("-e", "production")
    connect(server) do |socket|
      socket.write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
      read_reply_part(socket, "open")
      begun = now
      eventually(5) { now - begun > 1.5 }
      assert_equal 1, workers(server).size
    end
    eventually(20, "it goes when the stream has ended") { workers(server).empty? }
  end

  def read_reply_part(socket, text)
    seen = +""
    Timeout.timeout(20) { seen << socket.readpartial(4096) until seen.include?(text) }
  end

  # --- replacement

  def test_workers_are_replaced_after_max_requests_and_nobody_notices
    app HELD
    config "workers: 2\nthreads: 1\nmax_requests: 40\n"
    server = start("-e", "production")
    with_witness(server) do
      400.times { assert_equal "200", get(server, "/").code }
    end
    eventually(10, "the last replacement is over") { pool(server)["workers"].map { |worker| worker["state"] } == %w[idle idle] }
    count = pool(server)["exits"]["max_requests"]
    assert_operator count, :>=, 4 # a former worker serves on until the new one does
    assert_operator count, :<=, 20
    assert_equal({ "max_requests" => count }, exits(server))
    assert_equal count, server.output.scan(/ended: reason=max_requests /).size
  end

  # --- quiet

  def switches(pid)
    Dir.glob("/proc/#{pid}/task/*/status").sum { |file| File.read(file)[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i }
  end

  def test_an_idle_server_sleeps
    app HELD
    config "workers: 1..3\nidle: 5m\n"
    server = start("-e", "production", "-t", "2")
    5.times { assert_equal "200", get(server, "/").code }
    everybody = [server.pid, *children_of(server.pid).map(&:first)]
    settled = eventually(30, "all have settled") do
      before = everybody.to_h { |pid| [pid, switches(pid)] }
      begun = now
      eventually(10) { now - begun > 4 }
      woken = everybody.to_h { |pid| [pid, switches(pid) - before[pid]] }
      woken if woken.values.max <= 4
    end
    assert_equal everybody.size, settled.size
  end
end
