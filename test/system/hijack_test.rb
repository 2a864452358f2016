# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "digest/sha1"

# Connections that an application takes over: full and partial hijack, 101, WebSockets, event streams.
class HijackTest < ServerCase
  UPGRADE = "Connection: keep-alive, Upgrade\r\nUpgrade: echo"

  APP = <<~'RUBY'
    SEEN = Queue.new
    BODY = Object.new.tap do |body|
      body.define_singleton_method(:each) { nil }
      body.define_singleton_method(:close) { SEEN << "closed" }
    end

    ECHO = proc do |io|
      while (text = io.readpartial(65_536))
        io.write(text)
      end
    rescue EOFError
      SEEN << "eof"
      io.write("end")
      io.close
    end

    run(proc { |env|
      case env["PATH_INFO"]
      when "/seen" then [200, {}, [SEEN.empty? ? "" : SEEN.pop]]
      when "/full"
        io = env["rack.hijack"].call
        io.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhi")
        io.close
        [-1, {}, BODY]
      when "/again"
        io = env["rack.hijack"].call
        same = io.equal?(env["rack.hijack"].call) && io.equal?(env["rack.hijack_io"])
        io.write("HTTP/1.1 200 OK\r\n\r\n#{same} #{io.is_a?(IO)} #{%i[read_nonblock write_nonblock close_write].all? { |name| io.respond_to?(name) }}")
        io.close
        nil
      when "/full-echo"
        io = env["rack.hijack"].call
        Thread.new { ECHO.call(io) }
        [200, {"content-length" => "5"}, ["never"]]
      when "/raise"
        env["rack.hijack"].call
        raise "after the hijack"
      when "/partial"
        [200, {"content-type" => "text/plain", "rack.hijack" => proc { |io| Thread.new { io.write("raw"); io.close } }}, BODY]
      when "/echo" then [101, {"upgrade" => "echo"}, ECHO]
      when "/protocol" then [200, {"rack.protocol" => env["rack.protocol"].first}, ECHO]
      when "/other-protocol" then [200, {"rack.protocol" => "none"}, ECHO]
      when "/hold" then [101, {"upgrade" => "echo"}, proc { |io| io.write("held"); io.read; io.close; SEEN << "left" }]
      when "/source" then [101, {"upgrade" => "echo"}, proc { |io| 160.times { io.write("x" * 65_536) }; io.close }]
      when "/sink" then [101, {"upgrade" => "echo"}, proc { |io| sleep 1; io.write(io.read.bytesize.to_s); io.close }]
      when "/events"
        [200, {"content-type" => "text/event-stream"}, proc { |io| 5.times { |i| io.write("data: #{i} #{Process.clock_gettime(Process::CLOCK_MONOTONIC)}\n\n"); sleep 0.1 }; io.close }]
      when "/endless"
        [200, {"content-type" => "text/event-stream"}, proc { |io| loop { io.write("data: x\n\n"); sleep 0.1 } }]
      when "/cut-events"
        [200, {"content-type" => "text/event-stream"}, proc { |io| io.write("data: x\n\n"); raise "half" }]
      when "/env"
        [200, {}, [%w[HTTP_CONNECTION HTTP_UPGRADE rack.protocol rack.hijack?].map { |key| env[key].inspect }.join(" ") + " #{env["rack.hijack"].respond_to?(:call)}"]]
      else [200, {}, [Process.pid.to_s]]
      end
    })
  RUBY

  def setup
    super
    app APP
  end

  def serve(*options) = start("-e", "production", "-w", "1", "-t", "2", *options)

  def ask(socket, path, fields = nil)
    socket.write(["GET #{path} HTTP/1.1", "Host: a", *fields, "", ""].join("\r\n"))
  end

  # The answer's head, byte by byte, so that what follows is still in the socket.
  def head(socket, seconds: 10)
    Timeout.timeout(seconds) do
      text = +""
      text << (socket.readpartial(1) || break) until text.end_with?("\r\n\r\n")
      text
    end
  end

  def upgraded(server, path = "/echo")
    socket = TCPSocket.new("127.0.0.1", server.port)
    ask(socket, path, UPGRADE)
    assert_match(/\AHTTP\/1\.1 101 /, head(socket))
    socket
  end

  def rest(socket, seconds: 10) = Timeout.timeout(seconds) { socket.read }

  def streams(server) = pool(server)["streams"]

  def seen(server) = get(server, "/seen").body

  # A sanitizer's allocator keeps what is freed, and a zone around everything.
  def inflation = binary.match?(/asan|tsan/) ? 5 : 1

  def descriptors(pid) = Dir.children("/proc/#{pid}/fd").size

  def test_a_full_hijack_is_answered_by_the_application_and_its_body_closed_once
    server = serve
    connect(server) do |socket|
      ask(socket, "/full")
      assert_equal "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhi", rest(socket)
    end
    eventually { seen(server) == "closed" }
    assert_equal "", seen(server)
    connect(server) { |socket| ask(socket, "/again") || assert_equal("HTTP/1.1 200 OK\r\n\r\ntrue true true", rest(socket)) }
    refute_match(/ error /, server.output)
  end

  def test_a_request_of_http_1_0_can_be_hijacked_but_not_upgraded
    server = serve
    connect(server) do |socket|
      socket.write("GET /full HTTP/1.0\r\n\r\n")
      assert_match(/hi\z/, rest(socket))
    end
    connect(server) do |socket|
      socket.write("GET /echo HTTP/1.0\r\n#{UPGRADE}\r\n\r\n")
      assert_equal 500, read_reply(socket).status
    end
  end

  def test_what_was_sent_behind_the_head_and_after_half_a_close_is_the_applications
    server = serve
    connect(server) do |socket|
      ask(socket, "/full-echo")
      socket.write("early")
      assert_equal "early", Timeout.timeout(10) { socket.readpartial(100) }
      socket.write("late")
      assert_equal "late", Timeout.timeout(10) { socket.readpartial(100) }
      socket.close_write
      assert_equal "end", rest(socket)
    end
    eventually { streams(server).zero? }
  end

  def test_a_partial_hijack_gets_the_connection_behind_status_and_fields
    server = serve
    connect(server) do |socket|
      ask(socket, "/partial")
      text = rest(socket)
      assert_match(/\AHTTP\/1\.1 200 OK\r\ncontent-type: text\/plain\r\n.*connection: close\r\n.*\r\n\r\nraw\z/m, text)
      refute_match(/chunked|rack\.hijack/, text)
    end
    eventually { seen(server) == "closed" }
    reply = raw(server, "HEAD /partial HTTP/1.1\r\nHost: a\r\n\r\n", methods: ["HEAD"]).first
    assert_equal 200, reply.status
  end

  def test_an_upgrade_shows_its_fields_and_becomes_raw_both_ways
    server = serve
    connect(server) do |socket|
      ask(socket, "/env", "Connection: keep-alive, Upgrade\r\nUpgrade: foo, echo/1")
      assert_equal '"keep-alive, Upgrade" "foo, echo/1" ["foo", "echo/1"] true true', read_reply(socket).body
      ask(socket, "/env", "Upgrade: foo")
      assert_equal "nil nil nil true true", read_reply(socket).body
    end
    %w[/echo /protocol].each do |path|
      connect(server) do |socket|
        ask(socket, path, UPGRADE)
        text = head(socket)
        assert_match(/^upgrade: echo\r$/, text)
        assert_match(/^connection: upgrade\r$/, text)
        refute_match(/content-length|chunked|rack/, text)
        socket.write("question")
        assert_equal "question", Timeout.timeout(10) { socket.readpartial(100) }
        socket.close_write
        assert_equal "end", rest(socket)
      end
    end
  end

  def test_a_protocol_that_was_not_asked_for_is_an_error
    server = serve
    assert_equal 500, raw(server, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n").first.status
    assert_equal 500, raw(server, "GET /other-protocol HTTP/1.1\r\nHost: a\r\n#{UPGRADE}\r\n\r\n").first.status
    assert_equal 500, raw(server, "GET /protocol HTTP/1.1\r\nHost: a\r\n\r\n").first.status
    assert_match(/\A\d+\z/, get(server, "/").body)
  end

  def test_streams_hold_neither_slots_nor_threads_and_are_counted
    server = serve
    held = Array.new(20) { upgraded(server, "/hold") }
    held.each { |socket| assert_equal "held", Timeout.timeout(10) { socket.readpartial(100) } }
    eventually { streams(server) == 20 }
    assert_equal 0, pool(server)["slots"]["busy"]
    assert_equal "200", get(server, "/").code
    begun = now
    held.each(&:close)
    eventually(1, "the application sees that its clients left") { streams(server).zero? }
    assert_operator now - begun, :<, 1
    20.times { eventually { seen(server) == "left" } }
  end

  def test_a_client_that_resets_is_seen_within_a_second
    server = serve
    socket = upgraded(server)
    reset(socket)
    eventually(1) { seen(server) == "eof" }
    eventually(1) { streams(server).zero? }
    refute_match(/ error /, server.output)
  end

  def test_an_exception_after_a_hijack_is_logged_and_ends_the_connection
    server = serve
    connect(server) do |socket|
      ask(socket, "/raise")
      assert_equal "", rest(socket)
    end
    assert_equal "200", get(server, "/").code
    assert_match(/RuntimeError: after the hijack/, server.output)
    eventually { streams(server).zero? }
  end

  def test_many_rounds_leave_no_descriptor_behind
    server = serve
    round = lambda do |path|
      connect(server) do |socket|
        ask(socket, path, UPGRADE)
        head(socket)
        socket.close_write if path == "/echo"
        rest(socket)
      end
    end
    paths = %w[/full /partial /echo]
    10.times { paths.each(&round) }
    eventually { streams(server).zero? }
    processes = processes(server, "front") + workers(server)
    former = processes.map { |pid| descriptors(pid) }
    200.times { |i| round.call(paths[i % 3]) }
    eventually(10, "descriptors are as before") do
      streams(server).zero? && processes.zip(former).all? { |pid, count| descriptors(pid) <= count + 1 }
    end
  end

  def test_ten_megabytes_each_way_are_held_back_by_a_slow_reader
    server = serve
    front = processes(server, "front").first
    memory = -> { File.read("/proc/#{front}/status")[/VmRSS:\s+(\d+)/, 1].to_i }
    source = upgraded(server, "/source")
    sink = upgraded(server, "/sink")
    former = memory.call
    160.times { sink.write("x" * 65_536) }
    sink.close_write
    assert_equal (160 * 65_536).to_s, rest(sink, seconds: 30)
    assert_operator memory.call - former, :<, 2000 * inflation
    assert_equal 160 * 65_536, rest(source, seconds: 30).bytesize
    [source, sink].each(&:close)
  end

  # The next line of data.
  def next_event(socket)
    Timeout.timeout(10) do
      loop do
        line = socket.gets
        return line if line.start_with?("data:")
      end
    end
  end

  def test_events_are_at_the_client_within_twenty_milliseconds
    server = serve
    connect(server) do |socket|
      ask(socket, "/events")
      head(socket)
      delays = Array.new(5) { now - next_event(socket).split.last.to_f }
      assert_operator delays.sort[2], :<, 0.02, delays.inspect
    end
  end

  def test_open_ended_answers_hold_no_thread_and_end_as_they_should
    server = serve
    open = Array.new(10) { TCPSocket.new("127.0.0.1", server.port).tap { |socket| ask(socket, "/endless") } }
    open.each { |socket| assert_match(/^transfer-encoding: chunked\r$/, head(socket)) || next_event(socket) }
    assert_equal "200", get(server, "/").code
    status = pool(server)
    assert_equal [0, 10], [status["slots"]["busy"], status["streams"]]
    open.each(&:close)
    eventually(2) { streams(server).zero? }
    whole = raw(server, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n").first
    assert whole.complete
    assert_equal 5, whole.body.scan("data:").size
    cut = raw(server, "GET /cut-events HTTP/1.1\r\nHost: a\r\n\r\n").first
    assert_equal ["data: x\n\n", false], [cut.body, cut.complete]
    assert_match(/RuntimeError: half/, server.output)
  end

  def test_streams_outlive_a_rolling_restart_in_their_old_worker
    server = serve
    old = workers(server)
    socket = upgraded(server)
    out, code = leat("restart", dir: server.dir)
    assert_equal 0, code, out
    eventually { get(server, "/").body.to_i != old.first }
    socket.write("still there")
    assert_equal "still there", Timeout.timeout(10) { socket.readpartial(100) }
    assert_includes workers(server), old.first
    socket.close
    eventually(5, "the old worker ends with its last stream") { !workers(server).include?(old.first) }
  end

  def test_a_rolling_restart_ends_streams_when_their_time_is_over
    config "timeouts: {stream_drain: 1s}\n"
    server = serve
    old = workers(server)
    blocked = upgraded(server, "/hold")
    idle = TCPSocket.new("127.0.0.1", server.port)
    ask(idle, "/full-echo")
    leat("restart", dir: server.dir)
    assert_equal "held", rest(blocked, seconds: 10)
    assert_equal "", rest(idle, seconds: 10)
    eventually(5) { (workers(server) & old).empty? }
    [blocked, idle].each(&:close)
    refute_match(/killed|crash/, server.output.lines.grep(/reason=/).join)
  end

  def test_a_stop_waits_for_streams_no_longer_than_the_drain
    config "timeouts: {drain: 1s}\n"
    server = serve
    open = [upgraded(server), upgraded(server, "/hold")]
    events = TCPSocket.new("127.0.0.1", server.port)
    ask(events, "/endless")
    head(events)
    begun = now
    stop(server)
    assert_operator now - begun, :<, 3
    [*open, events].each(&:close)
  end

  def test_a_stop_that_only_had_streams_to_end_is_a_success
    config "timeouts: {drain: 1s}\n"
    server = serve
    socket = upgraded(server)
    assert_equal 0, stop(server)
    assert_equal "", rest(socket).delete_suffix("end")
  end

  def test_the_access_log_has_the_line_when_the_stream_ends
    config "access_log: {file: log/access.log, format: combined}\n"
    server = serve
    path = File.join(@dir, "log/access.log")
    lines = -> { File.exist?(path) ? File.read(path).lines : [] }
    socket = upgraded(server)
    socket.write("12345")
    assert_equal "12345", Timeout.timeout(10) { socket.readpartial(100) }
    connect(server) { |other| ask(other, "/full") || rest(other) }
    eventually { lines.call.any? { |line| line.include?("/full") } }
    assert_empty lines.call.grep(/echo/)
    socket.close_write
    rest(socket)
    socket.close
    eventually { lines.call.any? { |line| line =~ /"GET \/echo HTTP\/1.1" 101 8 / } }
    assert_match(/"GET \/full HTTP\/1.1" 200 /, lines.call.grep(/full/).first)
  end

  def test_hundreds_of_idle_streams_cost_little_memory_and_no_time
    server = serve
    front = processes(server, "front").first
    memory = -> { File.read("/proc/#{front}/smaps_rollup")[/Private_Dirty:\s+(\d+)/, 1].to_i }
    ticks = -> { [front, *workers(server)].sum { |pid| File.read("/proc/#{pid}/stat").split[13, 2].sum(&:to_i) } }
    warm = Array.new(20) { upgraded(server) }
    former = memory.call
    count = [300, Process.getrlimit(:NOFILE).first / 3].min
    open = Array.new(count) { upgraded(server) }
    assert_operator (memory.call - former) * 1024 / count, :<, 10_000 * inflation
    idle = ticks.call
    assert_nil open.first.wait_readable(1)
    assert_operator ticks.call - idle, :<, 5
    (warm + open).each(&:close)
  end

  # A WebSocket by hand (RFC 6455): its handshake, and frames as small as these.
  WEBSOCKET = <<~'RUBY'
    require "digest/sha1"
    run(proc { |env|
      key = env["HTTP_SEC_WEBSOCKET_KEY"]
      next [200, {}, ["no WebSocket"]] unless env["HTTP_UPGRADE"] == "websocket" && env["HTTP_CONNECTION"] =~ /upgrade/i
      io = env["rack.hijack"].call
      accept = [Digest::SHA1.digest(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")].pack("m0")
      io.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: #{accept}\r\n\r\n")
      Thread.new do
        while (start = io.read(2))
          size = start.getbyte(1) & 127
          mask, text = io.read(4).bytes, io.read(size).bytes
          break if start.getbyte(0) & 15 == 8
          io.write([0x81, size].pack("CC") + text.each_with_index.map { |byte, i| byte ^ mask[i % 4] }.pack("C*"))
        end
        io.close
      end
      [-1, {}, []]
    })
  RUBY

  def frame(text, type = 1)
    mask = [1, 2, 3, 4]
    [0x80 | type, 0x80 | text.bytesize, *mask].pack("C*") + text.bytes.each_with_index.map { |byte, i| byte ^ mask[i % 4] }.pack("C*")
  end

  def websocket(server, path, fields = [])
    socket = TCPSocket.new("127.0.0.1", server.port)
    ask(socket, path, ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *fields])
    answer = head(socket)
    assert_match(/\AHTTP\/1\.1 101 /, answer)
    assert_match(/^Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r$/i, answer)
    socket
  end

  # The text of the next frame from the server.
  def read_frame(socket, seconds: 10)
    Timeout.timeout(seconds) do
      _, size = socket.read(2).unpack("CC")
      size = socket.read(2).unpack1("n") if size == 126
      socket.read(size)
    end
  end

  def test_a_websocket_echoes_and_closes
    app WEBSOCKET
    server = serve
    socket = websocket(server, "/")
    20.times do |i|
      socket.write(frame("message #{i}"))
      assert_equal "message #{i}", read_frame(socket)
    end
    socket.write(frame("", 8))
    assert_equal "", rest(socket)
    socket.close
    eventually { streams(server).zero? }
  end

  CABLE = <<~'RUBY'
    ENV["RAILS_ENV"] = "production"
    gem "rails", "~> 7.2.0"
    require "action_controller/railtie"
    require "action_cable/engine"

    class Shop < Rails::Application
      config.load_defaults 7.2
      config.root = __dir__
      config.eager_load = false
      config.secret_key_base = "x" * 64
      config.logger = Logger.new(nil)
      config.action_cable.cable = { "adapter" => "async" }
      config.action_cable.disable_request_forgery_protection = true
      config.action_cable.mount_path = "/cable"
      config.hosts.clear
    end

    module ApplicationCable
      class Connection < ActionCable::Connection::Base; end
      class Channel < ActionCable::Channel::Base; end
    end

    class NewsChannel < ApplicationCable::Channel
      def subscribed = stream_from("news")
      def shout(data) = ActionCable.server.broadcast("news", { text: data["text"] })
    end

    class NewsController < ActionController::Base
      def create
        ActionCable.server.broadcast("news", { text: params[:text] })
        head :no_content
      end
    end

    Rails.application.initialize!
    Rails.application.routes.draw { get "/say/:text", to: "news#create" }
    run Rails.application
  RUBY

  def test_action_cable_welcomes_subscribes_and_broadcasts
    app CABLE
    server = serve
    sockets = Array.new(5) { websocket(server, "/cable", ["Origin: http://a", "Sec-WebSocket-Protocol: actioncable-v1-json"]) }
    identifier = JSON.generate("channel" => "NewsChannel")
    sockets.each do |socket|
      assert_equal "welcome", JSON.parse(read_frame(socket))["type"]
      socket.write(frame(JSON.generate("command" => "subscribe", "identifier" => identifier)))
      assert_equal "confirm_subscription", next_message(socket)["type"]
    end
    assert_equal 5, streams(server)
    assert_equal 0, pool(server)["slots"]["busy"]
    assert_equal "204", get(server, "/say/hello").code
    sockets.each { |socket| assert_equal({ "text" => "hello" }, next_message(socket)["message"]) }
    sockets.first.write(frame(JSON.generate("command" => "message", "identifier" => identifier,
                                            "data" => JSON.generate("action" => "shout", "text" => "hi"))))
    sockets.each { |socket| assert_equal({ "text" => "hi" }, next_message(socket)["message"]) }
    sockets.each(&:close)
    eventually(5) { streams(server).zero? }
    refute_match(/ error /, server.output)
  end

  def next_message(socket)
    loop do
      text = JSON.parse(read_frame(socket))
      return text unless text["type"] == "ping"
    end
  end
end
