# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# What runs and waits can be looked at, and ended by hand.
class RequestsTest < ServerCase
  # /hold runs until somebody writes to the gate of that name; /stream has begun and goes on until then.
  HELD = <<~'RUBY'
    run(proc { |env|
      name = env["PATH_INFO"].split("/").last
      File.open("ran", "a") { |file| file.syswrite("#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}\n") }
      case env["PATH_INFO"]
      when %r{\A/hold}
        File.open("gate.#{name}", "r").close
      when "/taken"
        io = env["rack.hijack"].call
        Thread.new { io.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"); io.write(io.readpartial(100)) until io.eof?; File.write("over", "") }
        next [200, {}, []]
      when %r{\A/stream}
        parts = Enumerator.new { |list| list << "begun\n"; File.open("gate.#{name}", "r").close; list << "ended\n" }
        next [200, {"content-type" => "text/event-stream"}, parts]
      end
      [200, {"content-type" => "text/plain"}, ["ran in #{Process.pid}"]]
    })
  RUBY

  def setup
    super
    app HELD
    config "access_log: {file: log/access.log, format: json}\nqueue: {timeout: 20s}\n"
    @sockets = []
  end

  def teardown
    @sockets.each { |socket| socket.close unless socket.closed? }
    super
  end

  def ran = File.exist?(path = File.join(@dir, "ran")) ? File.readlines(path, chomp: true) : []

  def lines = File.exist?(path = File.join(@dir, "log/access.log")) ? File.readlines(path).map { |line| JSON.parse(line) } : []

  def ask(server, target, id, method: "GET")
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("#{method} #{target} HTTP/1.1\r\nHost: a\r\nX-Request-Id: #{id}\r\nContent-Length: 0\r\n\r\n")
    @sockets << socket
    socket
  end

  # A request that runs until its gate is opened.
  def hold(server, path, id, method: "GET")
    File.mkfifo(File.join(@dir, "gate.#{path.split("/").last[/[^?]+/]}"))
    socket = ask(server, path, id, method: method)
    eventually(10, "#{path} runs") { ran.include?("#{method} #{path[/[^?]+/]}") }
    socket
  end

  def open_gate(name) = File.open(File.join(@dir, "gate.#{name}"), File::WRONLY | File::NONBLOCK, &:close)

  def requests(*words)
    out, code = leat("requests", "--json", *words)
    assert_equal 0, code, out
    JSON.parse(out)
  end

  def listed(id) = requests["requests"].find { |one| one["id"] == id }

  def kill(id) = leat("requests", "kill", id)

  def test_what_runs_streams_and_waits_is_listed_the_oldest_first
    server = start("-e", "production", "-w", "1", "-t", "2")
    assert_equal ["no request waits or runs\n", 0], leat("requests")
    hold(server, "/hold/a?secret=1", "first-id", method: "POST")
    stream = hold(server, "/stream/b", "second-id")
    assert_equal 200, stream.gets[/ (\d+) /, 1].to_i
    ask(server, "/wait", "third-id")
    seen = eventually(5, "three are there") { requests["requests"].then { |all| all if all.size == 3 } }
    assert_equal %w[first-id second-id third-id], seen.map { |one| one["id"] }
    assert_equal %w[running streaming queued], seen.map { |one| one["state"] }
    assert_equal [*workers(server) * 2, nil], seen.map { |one| one["worker"] }
    assert_equal %w[/hold/a /stream/b /wait], seen.map { |one| one["path"] }
    assert_equal %w[POST GET GET], seen.map { |one| one["method"] }
    assert_equal ["127.0.0.1"], seen.map { |one| one["client"] }.uniq
    assert_equal [pool(server)["name"]], seen.map { |one| one["pool"] }.uniq
    assert_equal [0, []], requests.values_at("left_out", "silent_fronts")
    assert_operator seen.first["app_ms"], :<=, seen.first["age_ms"]
    assert_equal 0, seen.last["app_ms"]
    out, code = leat("requests", @dir)
    assert_equal 0, code
    assert_match(/\A +AGE +STATE +POOL +WORKER +CLIENT +ID +METHOD +PATH\n +\d+\.\ds +running +\S+ +#{workers(server).first} +127\.0\.0\.1 +first-id +POST +\/hold\/a\n/, out)
    refute_includes out, "secret"
  end

  def test_all_pools_and_all_loops_are_shown
    write("blog/config.ru", File.read(File.join(@dir, "config.ru")))
    config <<~YAML
      loops: 3
      pools:
        shop: {app: ., workers: 1, threads: 8}
        blog: {app: blog, workers: 1, threads: 1}
      sites:
        - {host: shop.test, pool: shop}
        - {host: blog.test, pool: blog}
    YAML
    server = start("-e", "production")
    File.mkfifo(File.join(@dir, "gate.a"))
    File.mkfifo(File.join(@dir, "blog/gate.a"))
    @sockets = %w[shop shop shop shop shop shop blog blog].each_with_index.map do |host, number|
      TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write("GET /hold/a HTTP/1.1\r\nHost: #{host}.test\r\nX-Request-Id: #{host}-#{number}\r\n\r\n") }
    end
    seen = eventually(10, "all are there") { requests["requests"].then { |all| all if all.map { |one| one["state"] }.tally == { "running" => 7, "queued" => 1 } } }
    assert_equal({ "shop" => 6, "blog" => 2 }, seen.map { |one| one["pool"] }.tally)
    assert_equal "blog", seen.find { |one| one["state"] == "queued" }["pool"]
    assert_equal workers(server).sort, seen.filter_map { |one| one["worker"] }.uniq.sort
    6.times { |number| assert_equal 0, kill("shop-#{number}").last }
    assert_equal [502] * 6, @sockets.first(6).map { |socket| read_reply(socket).status }
    assert_equal ["blog"], requests["requests"].map { |one| one["pool"] }.uniq
  end

  def test_a_request_that_waits_is_answered_503_and_never_begun
    server = start("-e", "production", "-w", "1", "-t", "1")
    held = hold(server, "/hold/a", "held")
    waiting = ask(server, "/wait", "waiting", method: "POST")
    eventually(5, "it waits") { listed("waiting") }
    out, code = kill("waiting")
    assert_equal 0, code, out
    assert_match(%r{\Aended: POST /wait pool=\S+ was queued for \d+\.\d s\n\z}, out)
    reply = read_reply(waiting)
    assert_equal 503, reply.status
    assert reply.headers["retry-after"]
    open_gate("a")
    assert_equal 200, read_reply(held).status
    assert_equal "200", get(server, "/next").code
    refute_includes ran, "POST /wait"
    assert_equal 1, workers(server).size
    eventually(5) { lines.find { |line| line["id"] == "waiting" && line["status"] == 503 && line["refusal"] == "killed-waiting" } }
  end

  def test_a_request_that_runs_is_answered_502_never_again_and_its_worker_replaced_after_the_others
    server = start("-e", "production", "-w", "1", "-t", "2")
    former = workers(server).first
    innocent = hold(server, "/hold/innocent", "innocent")
    stuck = hold(server, "/hold/stuck", "stuck")
    out, code = kill("stuck")
    assert_equal 0, code, out
    assert_match(/was running for \d+\.\d s; worker #{former} is replaced\n\z/, out)
    assert_equal 502, read_reply(stuck).status
    open_gate("innocent")
    assert_equal "ran in #{former}", read_reply(innocent).body
    eventually(10, "another serves") { workers(server).then { |now| now.size == 1 && now != [former] } && gone?(former) }
    assert_equal "200", get(server, "/next").code
    assert_equal 1, ran.count("GET /hold/stuck"), "though a GET may run twice"
    assert_match(/request ended by hand, answered 502 id=stuck GET \/hold\/stuck$/, server.output)
    assert_equal 1, pool(server)["exits"]["normal"]
    eventually(5) { lines.find { |line| line["id"] == "stuck" && line["status"] == 502 && line["refusal"] == "killed" } }
    assert_equal [1, "no request with that id waits or runs\n"], kill("stuck").reverse
  end

  def test_a_stream_is_visibly_cut
    server = start("-e", "production", "-w", "1", "-t", "1")
    stream = hold(server, "/stream/a", "stream")
    assert stream.wait_readable(10)
    eventually(5, "it streams") { listed("stream")&.fetch("state") == "streaming" }
    assert_equal 0, kill("stream").last
    refute read_reply(stream).complete
    eventually(5) { lines.find { |line| line["id"] == "stream" && line["status"] == 200 && line["refusal"] == "killed" } }
    eventually(10, "the thread is free again") { pool(server)["slots"].values_at("busy", "total") == [0, 1] }
  end

  def test_a_connection_that_the_application_took_over_ends_on_both_sides
    server = start("-e", "production", "-w", "1", "-t", "1")
    former = workers(server)
    socket = ask(server, "/taken", "taken")
    assert_equal 101, read_reply(socket).status
    socket.write("x")
    assert_equal "x", socket.readpartial(1)
    eventually(5, "the thread is free") { pool(server)["slots"]["busy"].zero? }
    assert_equal ["streaming", former.first, "/taken"], listed("taken").values_at("state", "worker", "path")
    out, code = kill("taken")
    assert_equal 0, code
    assert_match(/\Aended: GET \/taken pool=\S+ was streaming for \d+\.\d s\n\z/, out)
    assert_equal "", Timeout.timeout(10) { socket.read }
    eventually(5, "the application sees the end") { File.exist?(File.join(@dir, "over")) }
    assert_nil listed("taken")
    assert_equal former, workers(server)
    eventually(5) { lines.find { |line| line["id"] == "taken" && line["status"] == 101 && line["refusal"] == "killed" } }
  end

  def test_a_request_whose_client_has_left_is_still_seen_and_ended
    server = start("-e", "production", "-w", "1", "-t", "1")
    former = workers(server).first
    reset(hold(server, "/hold/a", "left", method: "POST"))
    seen = eventually(5, "it is seen") { listed("left").then { |one| one if one&.fetch("state") == "left" } }
    assert_equal ["/hold/a", "POST", former], seen.values_at("path", "method", "worker")
    assert_equal 0, kill("left").last
    eventually(10, "the worker is replaced") { gone?(former) && workers(server).size == 1 }
    assert_equal "200", get(server, "/next").code
    assert_equal 1, ran.count("POST /hold/a")
  end

  def test_requests_that_share_an_id_end_together
    server = start("-e", "production", "-w", "1", "-t", "1")
    held = hold(server, "/hold/a", "held")
    twice = Array.new(2) { ask(server, "/wait", "twice") }
    eventually(5, "both wait") { requests["requests"].count { |one| one["id"] == "twice" } == 2 }
    assert_equal 2, kill("twice").first.scan(/^ended: /).size
    assert_equal [503, 503], twice.map { |socket| read_reply(socket).status }
    open_gate("a")
    assert_equal 200, read_reply(held).status
  end

  def test_what_cannot_be_asked_says_why
    out, code = leat("requests")
    assert_equal ["not running\n", 3], [out, code]
    assert_equal 3, kill("some-id").last
    assert_equal 2, leat("requests", "kill").last
    assert_equal 2, leat("requests", "kill", "no id\nstop").last
    server = start("-e", "production", "-w", "1")
    out, code = kill("some-id")
    assert_equal ["no request with that id waits or runs\n", 1], [out, code]
    assert_equal 2, leat("requests", @dir, "more").last
    assert_equal "200", get(server, "/").code
  end

  def test_a_front_that_hangs_or_dies_does_not_hang_the_caller
    server = start("-e", "production", "-w", "1")
    front = processes(server, "front").first
    Process.kill("STOP", front)
    assert_equal [front], requests["silent_fronts"]
    out, code = leat("requests")
    assert_equal ["no request waits or runs\nfront #{front} does not answer: what it has is not shown\n", 0], [out, code]
    out, code = kill("some-id")
    assert_equal ["front #{front} does not answer: what it has is not shown\n", 1], [out, code]
    caller = Thread.new { requests["silent_fronts"] }
    Process.kill("KILL", front)
    assert_includes [[], [front]], caller.value
    eventually(10, "a new one serves") { get(server, "/").code == "200" rescue false }
    assert_empty requests["silent_fronts"]
  end

  def test_bytes_that_clients_choose_do_no_harm_to_whoever_looks
    server = start("-e", "production", "-w", "1", "-t", "1")
    hold(server, "/hold/a", "held")
    ask(server, "/\e[2J\xff\"".b.gsub(/[\x00-\x20]/n) { |byte| format("%%%02X", byte.ord) }, "odd")
    ask(server, "/#{"x" * 4000}", "long")
    eventually(5, "both wait") { requests["requests"].size == 3 }
    out, = leat("requests")
    refute_match(/[^\n\x20-\x7e]/n, out.b)
    assert_equal "/#{"x" * 1023}", listed("long")["path"]
  end

  def test_a_deep_queue_is_shown_as_far_as_there_is_room
    server = start("-e", "production", "-w", "1", "-t", "1")
    hold(server, "/hold/a", "held")
    many = 900
    connections = Array.new(many) { |number| ask(server, "/#{"x" * 1500}", "#{"y" * 240}#{number}") }
    eventually(20, "all wait") { pool(server)["queue"]["length"] == many }
    seen = requests
    assert_equal many + 1, seen["requests"].size + seen["left_out"]
    assert_operator seen["left_out"], :>, 0
    assert_equal "held", seen["requests"].first["id"]
    connections.each(&:close)
  end
end
