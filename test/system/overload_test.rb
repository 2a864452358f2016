# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Ten times as much as the workers can do: they do what they can, the rest is told at once, nothing stays
# behind.
class OverloadTest < ServerCase
  SECONDS = 5
  THREADS = 2
  SERVICE = 0.05

  # Each run leaves the time that it took, so that what a slow machine adds does not count as idleness.
  APP = <<~'RUBY'
    served = File.open("served", "a")
    run(proc { |env|
      begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      sleep 0.05
      served.syswrite("#{Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun}\n")
      [200, {"content-type" => "text/plain"}, ["ok"]]
    })
  RUBY

  Outcome = Struct.new(:status, :retry_after, :seconds)

  # Sends so many requests a second whatever becomes of them, each on a connection of its own.
  def flood(server, seconds, per_second)
    outcomes = []
    waiting = {}
    due = now
    limit = due + seconds
    until now > limit && waiting.empty?
      while due < [now, limit].min
        socket = TCPSocket.new("127.0.0.1", server.port)
        socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        waiting[socket] = now
        due += 1.0 / per_second
      end
      (IO.select(waiting.keys, nil, nil, 0.005) || [[]]).first.each { |socket| outcomes << outcome(socket, waiting.delete(socket)) }
    end
    outcomes
  end

  def outcome(socket, begun)
    reply = read_reply(socket)
    Outcome.new(reply.status, reply.headers["retry-after"], now - begun)
  ensure
    socket.close
  end

  def served = File.readlines(File.join(@dir, "served")).map(&:to_f)

  def memory_kb(pid) = File.read("/proc/#{pid}/status")[/^RssAnon:\s+(\d+)/, 1].to_i

  def begin_server(queue)
    app APP
    @admin = free_port
    config "queue: #{queue}\nadmin: 127.0.0.1:#{@admin}\npulse: /up\n"
    @server = start("-e", "production", "-w", "1", "-t", THREADS)
    10.times { assert_equal "200", get(@server, "/").code }
    File.write(File.join(@dir, "served"), "")
  end

  def test_ten_times_the_capacity_is_served_as_far_as_it_goes_and_leaves_nothing
    begin_server("{length: 1000, timeout: 500ms}")
    front = processes(@server, "front").first
    before = memory_kb(front)
    begun = now
    outcomes = with_witness(@server, "/up") { flood(@server, SECONDS, 10 * THREADS / SERVICE) }
    lasted = now - begun
    good, refused = outcomes.partition { |one| one.status == 200 }

    assert_operator served.sum, :>=, 0.9 * THREADS * lasted, "the workers were busy"
    assert_equal served.size, good.size, "what ran was answered"
    assert_equal [503], refused.map(&:status).uniq
    assert refused.all? { |one| one.retry_after.to_i.between?(1, 5) }
    assert_operator refused.map(&:seconds).sort[refused.size / 2], :<, 0.3, "refused at once, not after the wait"
    queue = pool(@server)["queue"]
    assert_equal refused.size, queue["shed"] + queue["expired"]
    assert_operator queue["expired"], :<=, refused.size / 10, "few wait in vain"

    eventually(1.5, "the queue is empty again") { pool(@server)["queue"]["length"].zero? }
    waits = Array.new(5) { from = now; assert_equal("200", get(@server, "/").code); now - from }
    assert_operator waits.min, :<, 4 * SERVICE, "as if nothing had been"
    assert_operator memory_kb(front) - before, :<, 20_000 if memory_factor == 1
  end

  # Whoever asks whether the server is well must not be told "no" because it has much to do: its share of
  # the load would go to others, who would fall the same way.
  def test_readiness_and_pulse_are_answered_ahead_of_a_queue_that_is_full
    begin_server("{length: 5, timeout: 10s}")
    held = Thread.new { flood(@server, 1, 400) }
    eventually(5, "it refuses") { pool(@server)["queue"]["shed"].positive? }
    assert_equal "200", get(@server, "/up").code
    assert_equal "200", Net::HTTP.get_response("127.0.0.1", "/ready", @admin).code
    assert_equal ["ready\n", 0], leat("healthcheck", "-C", File.join(@dir, "leat.yml"))
    assert_includes held.value.map(&:status), 503
  end

  # One thread that hangs for a second is no reason to send away those that will be served right afterwards.
  def test_one_slow_request_among_fast_ones_sends_nobody_away
    app <<~'RUBY'
      run(proc { |env|
        sleep 1.5 if env["PATH_INFO"] == "/slow"
        [200, {"content-type" => "text/plain"}, ["ok"]]
      })
    RUBY
    config "queue: {length: 1000, timeout: 4s}\n"
    server = start("-e", "production", "-w", "1", "-t", "1")
    20.times { assert_equal "200", get(server, "/").code }
    paths = ["/slow"] + ["/"] * 100 + ["/slow"] + ["/"] * 100
    sockets = paths.map do |path|
      TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }
    end
    assert_equal [200], sockets.map { |socket| read_reply(socket).status.tap { socket.close } }.uniq
    assert_equal [0, 0], pool(server)["queue"].values_at("shed", "expired")
  end

  def test_a_refusal_by_forecast_has_its_own_word_and_an_honest_time
    app APP.sub("0.05", "0.4")
    config "queue: {length: 100, timeout: 1500ms}\naccess_log: {file: log/access.log, format: json}\n"
    server = start("-e", "production", "-w", "1", "-t", "1")
    5.times { assert_equal "200", get(server, "/").code }
    sockets = Array.new(10) { TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write("GET /x HTTP/1.1\r\nHost: a\r\n\r\n") } }
    begun = now
    late = eventually(5, "some are refused") { sockets.select { |socket| socket.wait_readable(0) }.then { |ready| ready if ready.size >= 4 } }
    assert_operator now - begun, :<, 1.2, "before anybody has waited for long"
    refused = late.map { |socket| read_reply(socket) }.select { |reply| reply.status == 503 }
    assert_operator refused.size, :>=, 4
    seconds = refused.map { |reply| Integer(reply.headers["retry-after"]) }
    assert_empty seconds.reject { |value| value.between?(2, 3) }
    (sockets - late).each { |socket| read_reply(socket) }
    sleep_until(begun + seconds.max)
    assert_equal "200", get(server, "/after").code
    sockets.each(&:close)
    lines = eventually(5) { File.readlines(File.join(@dir, "log/access.log")).map { |line| JSON.parse(line) }.then { |all| all if all.any? { |line| line["path"] == "/after" } } }
    assert_includes lines.filter_map { |line| line["refusal"] }, "queue-long"
    assert_equal refused.size, pool(server)["queue"]["shed"]
  end

  def sleep_until(time) = eventually(10, "the time has come") { now >= time }
end
