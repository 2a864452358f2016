# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# One queue, first come first served, with ends.
class QueueTest < ServerCase
  # Runs until the file of that name is written into; so a test holds as many workers as it wants.
  HELD = <<~'RUBY'
    run(proc { |env|
      File.open("ran", "a") { |file| file.syswrite(env["PATH_INFO"] + "\n") }
      File.open("gate", "r").close if env["PATH_INFO"] == "/hold"
      [200, {"content-type" => "text/plain"}, ["ran"]]
    })
  RUBY

  def ran = File.exist?(path = File.join(@dir, "ran")) ? File.readlines(path, chomp: true) : []

  def hold(server, count)
    File.mkfifo(File.join(@dir, "gate")) unless File.exist?(File.join(@dir, "gate"))
    clients = Array.new(count) { Thread.new { get(server, "/hold").body } }
    eventually(10, "#{count} are held") { ran.count("/hold") == count }
    clients
  end

  # Every reader that waits gets an end of file.
  def let_go(clients)
    File.open(File.join(@dir, "gate"), "w", &:close) while clients.any?(&:alive?) && !clients.find(&:alive?)&.join(0.05)
    assert_equal ["ran"] * clients.size, clients.map(&:value)
  end

  def ask(server, path)
    TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }
  end

  def test_a_full_queue_refuses_at_once_and_serves_the_rest_afterwards
    app HELD
    config "queue: {length: 3, timeout: 20s}\n"
    server = start("-e", "production", "-w", "1", "-t", "2")
    held = hold(server, 2)
    waiting = Array.new(3) { |number| ask(server, "/wait#{number}") }
    eventually(5, "three wait") { pool(server)["queue"]["length"] == 3 }
    3.times do
      begun = now
      reply = raw(server, "GET /over HTTP/1.1\r\nHost: a\r\n\r\n").first
      assert_equal 503, reply.status
      assert_match(/\A\d+\z/, reply.headers["retry-after"])
      assert_operator now - begun, :<, 1
    end
    assert_equal({ "shed" => 3, "limit" => 3, "length" => 3 }, pool(server)["queue"].slice("shed", "limit", "length"))
    let_go(held)
    assert_equal ["ran"] * 3, waiting.map { |socket| read_reply(socket).body }
    refute_includes ran, "/over"
    waiting.each(&:close)
  end

  # Answers how many other requests were begun while this one was under way.
  OVERTAKEN = <<~'RUBY'
    begun = 0
    null = File.open("/dev/null", "w")
    run(proc { |env|
      own = begun += 1
      null.syswrite("gives the lock of Ruby up")
      500.times { Object.new }
      [200, {"content-type" => "text/plain"}, [(begun - own).to_s]]
    })
  RUBY

  def test_a_thread_begins_no_more_requests_while_those_of_other_threads_wait_for_ruby
    app OVERTAKEN
    server = start("-e", "production", "-w", "1", "-t", "3")
    request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    overtaken = Array.new(20) { Thread.new { raw(server, request * 100, count: 100).map { |reply| reply.body.to_i } } }.flat_map(&:value)
    assert_equal 2000, overtaken.size
    assert_operator overtaken.sort[1980], :<=, 8, "but for one in a hundred"
  end

  def test_who_waited_too_long_gets_503_and_is_not_begun
    app HELD
    config "queue: {length: 10, timeout: 500ms}\n"
    server = start("-e", "production", "-w", "1", "-t", "1")
    held = hold(server, 1)
    reply = raw(server, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n").first
    assert_equal 503, reply.status
    assert reply.headers["retry-after"]
    assert_equal 1, pool(server)["queue"]["expired"]
    let_go(held)
    assert_equal "ran", get(server, "/next").body
    refute_includes ran, "/late"
  end

  def test_the_request_of_a_client_that_left_the_queue_never_runs
    app HELD
    config "access_log: {file: log/access.log}\n"
    server = start("-e", "production", "-w", "1", "-t", "1")
    held = hold(server, 1)
    leaving = Array.new(5) { ask(server, "/left") }
    staying = ask(server, "/half")
    staying.close_write
    eventually(5, "six wait") { pool(server)["queue"]["length"] == 6 }
    leaving.each { |socket| reset(socket) }
    eventually(5, "five have left") { pool(server)["queue"].slice("length", "abandoned") == { "length" => 1, "abandoned" => 5 } }
    let_go(held)
    assert_equal "ran", read_reply(staying).body, "a half-close is no leaving"
    staying.close
    assert_equal "ran", get(server, "/next").body
    refute_includes ran, "/left"
    eventually(5) { File.readlines(File.join(@dir, "log/access.log")).grep(%r{GET /left HTTP/1.1" 499 }).size == 5 }
  end

  def test_what_comes_first_is_begun_first
    app HELD
    server = start("-e", "production", "-w", "1", "-t", "1")
    held = hold(server, 1)
    pipelined = TCPSocket.new("127.0.0.1", server.port)
    pipelined.write(Array.new(5) { |number| "GET /p#{number} HTTP/1.1\r\nHost: a\r\n\r\n" }.join)
    eventually(5, "one of the pipelined waits") { pool(server)["queue"]["length"] == 1 }
    single = Array.new(4) do |number|
      ask(server, "/s#{number}").tap { eventually(5, "it waits") { pool(server)["queue"]["length"] == number + 2 } }
    end
    let_go(held)
    single.each { |socket| read_reply(socket) && socket.close }
    5.times { read_reply(pipelined) }
    pipelined.close
    assert_equal %w[/hold /p0 /s0 /s1 /s2 /s3 /p1 /p2 /p3 /p4], ran
  end

  def test_no_request_waits_for_a_busy_worker_while_another_is_idle
    app 'run(proc { |env| sleep 0.2; [200, {"content-type" => "text/plain"}, [Process.pid.to_s]] })'
    server = start("-e", "production", "-w", "4", "-t", "1")
    5.times do
      begun = now
      pids = Array.new(4) { Thread.new { get(server, "/").body } }.map(&:value)
      assert_operator now - begun, :<, 0.39
      assert_equal 4, pids.uniq.size
    end
  end

  # Twenty connections that never pause, two threads, ten milliseconds each: a fresh one waits its turn.
  def test_requests_not_connections_take_turns
    app 'run(proc { |env| sleep 0.01; [200, {"content-type" => "text/plain"}, ["t"]] })'
    server = start("-e", "production", "-w", "1", "-t", "2")
    running = true
    counts = Array.new(20, 0)
    clients = Array.new(20) do |number|
      Thread.new do
        Net::HTTP.start("127.0.0.1", server.port) do |client|
          client.get("/") && counts[number] += 1 while running
        end
      end
    end
    eventually(10, "all have begun") { counts.min > 2 }
    waits = Array.new(20) do
      begun = now
      assert_equal "200", get(server, "/").code
      now - begun
    end
    running = false
    clients.each(&:join)
    assert_operator waits.sort[-2], :<, 0.3, "20 x 10 ms / 2 and as much again"
    assert_operator counts.max - counts.min, :<=, 2 + counts.max / 10
  end

  # Six clients for two threads: two run, four wait. Neither who keeps a connection nor who opens one anew
  # stands further in front, and nobody is tied to a process.
  def test_connections_kept_or_closed_wait_alike
    app 'run(proc { |env| sleep 0.03; [200, {"content-type" => "text/plain"}, [Process.pid.to_s]] })'
    server = start("-e", "production", "-w", "2", "-t", "1")
    kept, closed = [true, false].map do |is_kept|
      Array.new(6) { Thread.new { timed_requests(server, 25, is_kept) } }.flat_map(&:value).sort
    end
    [kept, closed].each { |waits| assert_operator waits[-2], :<=, 1.2 * waits[waits.size / 2] + 0.2 }
    assert_in_delta kept[kept.size / 2], closed[closed.size / 2], 0.05
  end

  def timed_requests(server, count, is_kept)
    client = Net::HTTP.new("127.0.0.1", server.port)
    client.start if is_kept
    Array.new(count) do
      begun = now
      assert_equal "200", (is_kept ? client.get("/") : get(server, "/")).code
      now - begun
    end
  ensure
    client.finish if client&.started?
  end

  # While the application loads, the queue is what it is at any time: it has an end, it has a time limit,
  # and who leaves it is not served.
  def test_requests_that_come_while_the_application_loads_wait_as_configured
    app 'File.open("gate", "r").close; run(proc { |env| File.open("ran", "a") { |file| file.syswrite(env["PATH_INFO"] + "\n") }; [200, {}, ["ran"]] })'
    File.mkfifo(File.join(@dir, "gate"))
    config "queue: {length: 20, timeout: 3s}\nworkers: 0..1\nthreads: 1\n"
    server = start("-e", "production")
    sockets = Array.new(30) { |number| ask(server, "/#{number}") }
    eventually(10, "some are refused at once") { pool(server)["queue"]["shed"] >= 9 }
    refused, waiting = sockets.partition { |socket| socket.wait_readable(0.05) }
    refused.each { |socket| assert_equal 503, read_reply(socket).status }
    waiting.first(5).each { |socket| reset(socket) }
    eventually(5, "five have left") { pool(server)["queue"]["abandoned"] == 5 }
    assert_empty ran
    waiting.drop(5).each { |socket| assert_equal 503, read_reply(socket).status, "the wait is over" }
    late = ask(server, "/late")
    eventually(10, "it waits") { pool(server)["queue"]["length"] == 1 }
    assert_empty ran
    File.open(File.join(@dir, "gate"), "w", &:close)
    assert_equal "ran", read_reply(late, seconds: 10).body
    assert_equal ["/late"], ran
    seen = pool(server)["queue"]
    assert_equal 31, ran.size + seen.values_at("shed", "expired", "abandoned").sum
    (sockets - waiting.first(5) + [late]).each(&:close)
  end

  def test_a_crowd_that_leaves_costs_nothing
    app 'run(proc { |env| File.open("ran", "a") { |file| file.syswrite("1\n") }; sleep 0.2; [200, {}, []] })'
    config "queue: {length: 100, timeout: 3s}\n"
    server = start("-e", "production", "-w", "2", "-t", "1")
    sockets = Array.new(200) { ask(server, "/") }
    eventually(10, "the queue is full") { pool(server)["queue"]["shed"].positive? && ran.size >= 4 }
    leaving, staying = sockets.partition.with_index { |_, index| index % 4 != 0 }
    leaving.each { |socket| reset(socket) }
    statuses = staying.map { |socket| read_reply(socket).status.tap { socket.close } }
    assert_empty statuses - [200, 503]
    eventually(10, "all is quiet") { pool(server).then { |seen| seen["queue"]["length"].zero? && seen["slots"]["busy"].zero? } }
    seen = pool(server)
    assert_equal 200, ran.size + seen["queue"].values_at("shed", "expired", "abandoned").sum
    assert_operator ran.size, :<, 60
    assert_equal "200", get(server, "/").code
  end
end
