# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "digest"

# What the application hands back, and what of it goes out.
class ResponsesTest < ServerCase
  # The whole bytes of the answer to a request after which the connection ends.
  def wire(server, path = "/", version: "1.1")
    connect(server) do |socket|
      socket.write("GET #{path} HTTP/#{version}\r\nHost: a\r\nConnection: close\r\n\r\n")
      Timeout.timeout(20) { read_to_end(socket) }
    end
  end

  def read_to_end(socket)
    bytes = +"".b
    loop { bytes << socket.readpartial(65_536) }
  rescue EOFError, Errno::ECONNRESET
    bytes
  end

  def test_values_of_every_kind_become_lines_of_their_own
    app <<~'RUBY'
      HEADERS = {"content-type" => "text/plain", "set-cookie" => ["a=1", "b=2"], "x-old" => "c\nd", "x-nil" => nil, "x-int" => 7, "x-none" => [], "X-Case" => "e"}
      run(proc { |env| [env["PATH_INFO"] == "/string" ? "200" : 200, HEADERS, ["ok"]] })
    RUBY
    server = start
    ["/", "/string", "/"].each do |path|
      reply = raw(server, "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n").first
      assert_equal [200, "ok"], [reply.status, reply.body]
      assert_equal [%w[a=1 b=2], %w[c d], [], %w[7], [], %w[e]], %w[set-cookie x-old x-nil x-int x-none x-case].map { |name| reply.lines(name) }
    end
    assert_equal 1, server.output.lines.grep(/x-int/).size
  end

  def test_illegal_fields_stay_inside_and_are_named_once
    app <<~'RUBY'
      HEADERS = {"bad name" => "1", "rack.x" => "1", "status" => "200", "x-inj" => "a\r\nset-cookie: evil=1", "x-nul" => "a\0b", "x:y" => "1", "" => "1",
                 "transfer-encoding" => "gzip", "keep-alive" => "timeout=1", "content-type" => "text/plain", "x-fine" => "f"}
      run(proc { |env| [200, env["PATH_INFO"] == "/close" ? HEADERS.merge("connection" => "close") : HEADERS, ["ok"]] })
    RUBY
    server = start("-e", "production", "-w", "1")
    connect(server) do |socket|
      2.times do
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        reply = read_reply(socket)
        assert_equal [200, "ok", "f", "2"], [reply.status, reply.body, reply.headers["x-fine"], reply.headers["content-length"]]
        assert_equal %w[content-length content-type date x-fine x-request-id], (reply.headers.keys | ["x-request-id"]).sort
      end
      socket.write("GET /close HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal "close", read_reply(socket).headers["connection"]
      assert_equal "", socket.read
    end
    ["bad name", "x-inj", "x-nul"].each { |name| assert_equal 1, server.output.lines.grep(/#{name}/).size, name }
    refute_includes server.output, "evil"
  end

  ODD = <<~'RUBY'
    ODD = ["a", "", "\u00e9", "b" * 70_000, "", "z".encode("UTF-16LE")]
    class Parts
      def each = ODD.each { |part| yield part }
    end
    run(proc { |env|
      case env["PATH_INFO"]
      when "/array" then [200, {"content-type" => "text/plain"}, ODD]
      when "/chunks" then [200, {"content-type" => "text/plain", "transfer-encoding" => "chunked"}, ["2;x=y\r\nab\r\n", "1\r", "\nc\r\n0\r\n\r\n"]]
      when "/none" then [200, {"content-type" => "text/plain"}, []]
      when "/empty" then [200, {"content-type" => "text/plain"}, ["", ""].each]
      when "/call" then [200, {"content-type" => "text/plain"}, proc { |io| ODD.each { |part| io.write(part) }; io.close }]
      else [200, {"content-type" => "text/plain"}, Parts.new]
      end
    })
  RUBY

  def test_odd_bodies_are_framed_once_and_by_their_bytes
    app ODD
    server = start
    odd = ["a", "\u00e9".b, "b" * 70_000, "z\0"].join.b
    { "/" => odd, "/array" => odd, "/call" => odd, "/chunks" => "abc", "/none" => "", "/empty" => "" }.each do |path, body|
      reply = raw(server, "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n").first
      assert_equal [200, Digest::SHA256.hexdigest(body), true], [reply.status, Digest::SHA256.hexdigest(reply.body), reply.complete], path
      refute reply.headers["content-length"] && reply.headers["transfer-encoding"], path
      old = wire(server, path, version: "1.0")
      head, rest = old.split("\r\n\r\n", 2)
      assert_equal Digest::SHA256.hexdigest(body), Digest::SHA256.hexdigest(rest), "#{path} for HTTP/1.0"
      refute_match(/^transfer-encoding/i, head)
    end
  end

  RAISING = <<~'RUBY'
    Body = Struct.new(:parts, :where) do
      def each
        parts.each { |part| yield part }
        raise "boom" unless where == :close
      end

      def close
        File.write("closed", "1\n", mode: "a")
        raise "boom in close" if where == :close
      end
    end
    run(proc { |env|
      text = {"content-type" => "text/plain"}
      case env["PATH_INFO"]
      when "/late" then [200, text, Body.new(["part1"])]
      when "/length" then [200, text.merge("content-length" => "100"), Body.new(["part1"])]
      when "/early" then [200, text, Body.new([])]
      when "/close" then [200, text, Body.new(["part1"], :close)]
      when "/call" then [200, text, proc { |io| io.write("part1"); raise "boom" }]
      when "/short" then [200, text.merge("content-length" => "9"), ["part1"]]
      when "/long" then [200, text.merge("content-length" => "3"), ["part1HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]]
      when "/text" then [200, text.merge("content-length" => "five"), ["part1"]]
      else [200, text, [Process.pid.to_s]]
      end
    })
  RUBY

  def test_an_answer_that_breaks_off_is_visibly_cut_and_one_not_begun_is_500
    app RAISING
    server = start("-e", "production", "-w", "1", "-t", "1")
    worker = get(server, "/").body
    %w[/late /call /short].each do |path|
      out, status = Open3.capture2e("curl", "-sS", "-i", "-m", "10", "http://127.0.0.1:#{server.port}#{path}")
      assert_equal [18, 1], [status.exitstatus, out.scan("HTTP/1.1").size], "#{path}: #{out}"
      assert_includes out, "part1"
      refute_includes out, "boom"
      old = wire(server, path, version: "1.0")
      assert_equal 1, old.scan("HTTP/1.1 ").size
    end
    %w[/early /length].each { |path| assert_equal "500", get(server, path).code, "nothing of #{path} was out yet" }
    assert_equal %w[200 part1], get(server, "/close").then { |reply| [reply.code, reply.body] }
    assert_includes wire(server, "/text"), "HTTP/1.1 200 OK"
    refute_includes wire(server, "/long"), "HTTP/1.1 200 OK\r\ncontent-length: 0"
    assert_equal worker, get(server, "/").body, "the worker lives on"
    assert_equal 2 + 3, File.readlines(File.join(@dir, "closed")).size, "late twice, early, length and close once"
  end

  def test_statuses_outside_200_to_599_become_500
    app 'run(proc { |env| [eval(env["QUERY_STRING"]), {}, []] })'
    server = start("-e", "production", "-w", "1")
    %w[0 99 100 199 600 1000 nil].each { |status| assert_equal "500", get(server, "/?#{status}").code, status }
    %w[200 299 404 599].each { |status| assert_equal status, get(server, "/?#{status}").code }
  end

  def test_answers_without_a_body_have_none
    app <<~'RUBY'
      run(proc { |env| [env["PATH_INFO"].delete("/").to_i, {"content-type" => "text/plain", "content-length" => "5", "etag" => '"e"'}, ["hello"]] })
    RUBY
    server = start
    replies = raw(server, %w[204 304 200].map { |code| "GET /#{code} HTTP/1.1\r\nHost: a\r\n\r\n" }.join + "HEAD /200 HTTP/1.1\r\nHost: a\r\n\r\n",
                  count: 4, methods: %w[GET GET GET HEAD])
    assert_equal [204, 304, 200, 200], replies.map(&:status)
    assert_equal [nil, nil, "5", "5"], replies.map { |reply| reply.headers["content-length"] }
    assert_equal ["", "", "hello", ""], replies.map(&:body)
    assert_nil replies.first.headers["content-type"]
  end

  def test_a_head_over_the_limit_is_502_and_nothing_of_it_goes_out
    config "limits: {response_header: 8k}\n"
    app 'run(proc { |env| [200, {"x-much" => env["PATH_INFO"] == "/many" ? ["secret"] * 4000 : "secret" * 2000}, ["ok"]] })'
    server = start("-e", "production", "-w", "1")
    ["/", "/many"].each do |path|
      bytes = wire(server, path)
      assert_match(%r{\AHTTP/1\.1 502 }, bytes)
      refute_includes bytes, "secret"
    end
    config ""
    huge = start("-e", "production", "-w", "1")
    assert_equal 12_000, get(huge, "/")["x-much"].bytesize
  end

  def test_hints_go_before_the_answer
    app <<~'RUBY'
      run(proc { |env|
        env["rack.early_hints"].call("link" => "</a.css>; rel=preload\n</b.js>; rel=preload") if env["rack.early_hints"]
        [200, {"content-type" => "text/plain"}, ["ok"]]
      })
    RUBY
    server = start
    hint, reply = raw(server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", count: 2)
    assert_equal [103, 2], [hint.status, hint.lines("link").size]
    assert_equal [200, "ok"], [reply.status, reply.body]
    assert_equal 200, raw(server, "GET / HTTP/1.0\r\n\r\n").first.status
  end

  FILES = <<~'RUBY'
    class Keeper < File
      def close
        File.write("closed", "1\n", mode: "a")
        super
      end
    end
    run(proc { |env|
      case env["PATH_INFO"]
      when "/pid" then [200, {"content-type" => "text/plain"}, [Process.pid.to_s]]
      when "/missing" then [200, {"content-type" => "text/plain"}, Struct.new(:to_path) { def each = yield("instead") }.new("/nowhere")]
      when "/nil" then [200, {"content-type" => "text/plain"}, Struct.new(:to_path) { def each = yield("instead") }.new(nil)]
      else [200, {"content-type" => "application/octet-stream"}, Keeper.open("big.bin", "rb")]
      end
    })
  RUBY

  def test_files_are_sent_by_the_front_and_nothing_of_them_stays
    app FILES
    write "big.bin", data = Random.new(5).bytes(20 << 20)
    server = start("-e", "production", "-w", "1", "-t", "1")
    assert_equal Digest::SHA256.hexdigest(data), Digest::SHA256.hexdigest(get(server, "/").body)
    %w[/missing /nil].each { |path| assert_equal "instead", get(server, path).body }
    pids = processes(server, "front") + workers(server)
    before = descriptors(pids)
    slow = Array.new(5) do
      TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); socket.readpartial(1000) }
    end
    assert_equal "200", get(server, "/pid").code, "the only thread is free while the front sends"
    slow.each { |socket| reset(socket) }
    300.times do
      connect(server) do |socket|
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        socket.readpartial(1000)
      end
    end
    eventually(10, "as many descriptors as before") { descriptors(pids) <= before }
    assert_equal 306, File.readlines(File.join(@dir, "closed")).size
  end

  def descriptors(pids) = pids.sum { |pid| Dir.children("/proc/#{pid}/fd").size }

  STREAM = <<~'RUBY'
    run(proc { |env|
      if env["PATH_INFO"] == "/stream"
        [200, {"content-type" => "text/event-stream"}, proc { |io| loop { io.write("data: x\n\n"); sleep 0.1 } }]
      else
        [200, {}, ["ok"]]
      end
    })
  RUBY

  def open_streams(server)
    Array.new(3) do
      TCPSocket.new("127.0.0.1", server.port).tap do |socket|
        socket.write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        assert_match(/data: x/, socket.readpartial(1000) + socket.readpartial(1000))
      end
    end
  end

  def test_open_streams_end_with_the_drain_or_at_the_second_signal
    app STREAM
    config "timeouts: {drain: 1s, stream_drain: 1s}\n"
    server = start("-e", "production", "-w", "2", "-t", "3")
    streams = open_streams(server)
    begun = now
    assert_includes [0, 4], stop(server)
    assert_operator now - begun, :<, 3
    streams.each(&:close)

    config "timeouts: {drain: 60s, stream_drain: 60s}\n"
    server = start("-e", "production", "-w", "2", "-t", "3")
    streams = open_streams(server)
    all = children_of(server.pid).map(&:first)
    Process.kill("TERM", server.pid)
    eventually(5, "it drains") { TCPSocket.new("127.0.0.1", server.port).close || false rescue true }
    begun = now
    Process.kill("TERM", server.pid)
    assert_equal 4, wait_exit(server.pid)
    assert_operator now - begun, :<, 1
    eventually(2, "no process is left") { all.all? { |pid| gone?(pid) } }
    streams.each(&:close)
  end

  def test_parts_of_a_stream_go_out_as_they_come
    File.mkfifo(gate = File.join(@dir, "gate"))
    app <<~'RUBY'
      run(proc { |env|
        body = Enumerator.new { |list| list << "first"; File.open("gate", "r").close; list << "second" }
        [200, {"content-type" => "text/plain"}, body]
      })
    RUBY
    server = start
    connect(server) do |socket|
      socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      seen = +""
      seen << socket.readpartial(1000) until seen.include?("first")
      refute_includes seen, "second"
      File.open(gate, "w", &:close)
      assert_includes socket.read, "second"
    end
  end
end
