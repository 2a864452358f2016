# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "digest"

# What a client sees of the HTTP/1.1 front.
class HttpTest < ServerCase
  ECHO = <<~RUBY
    run(proc { |env|
      body = env["rack.input"].read
      text = [env["REQUEST_METHOD"], env["PATH_INFO"], env["QUERY_STRING"], body.bytesize, body[0, 40]].join("|")
      [200, {"content-type" => "text/plain"}, [text]]
    })
  RUBY

  def setup
    super
    app ECHO
  end

  def test_answers_pipelined_requests_in_order
    server = start
    requests = (1..5).map { |n| "GET /#{n} HTTP/1.1\r\nHost: a\r\n\r\n" }.join
    replies = raw(server, requests, count: 5)
    assert_equal (1..5).map { |n| "GET|/#{n}||0|" }, replies.map(&:body)
  end

  def test_a_chunked_body_ends_where_the_next_request_begins_at_every_cut
    server = start
    bytes = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nX-Sum: 1\r\n\r\n" \
            "GET /two HTTP/1.1\r\nHost: a\r\n\r\n"
    (1...bytes.bytesize).step(7) do |cut|
      socket = TCPSocket.new("127.0.0.1", server.port)
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      socket.write(bytes.byteslice(0, cut))
      socket.flush
      socket.write(bytes.byteslice(cut..))
      assert_equal "POST|/||5|abcde", read_reply(socket).body, "cut at #{cut}"
      assert_equal "GET|/two||0|", read_reply(socket).body, "cut at #{cut}"
      socket.close
    end
  end

  def test_sends_100_continue_only_when_the_body_is_wanted
    server = start
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    assert_equal 100, read_reply(socket).status
    socket.write("ping")
    assert_equal "POST|/||4|ping", read_reply(socket).body
    socket.close

    config "limits: {body: 10}\n"
    small = start
    assert_equal 413, raw(small, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n").first.status
  end

  def test_head_has_the_length_of_get_and_no_body
    server = start
    head, get = raw(server, "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\nGET /y HTTP/1.1\r\nHost: a\r\n\r\n", count: 2, methods: %w[HEAD GET])
    assert_equal 200, head.status
    assert_equal "HEAD|/x||0|".bytesize.to_s, head.headers["content-length"]
    assert_equal "GET|/y||0|", get.body
  end

  def test_limits_have_their_statuses
    config "limits: {target: 100, field: 200, header: 1k, headers: 10, body: 1k}\n"
    server = start
    [[414, "GET /#{'a' * 200} HTTP/1.1\r\nHost: a\r\n\r\n"],
     [431, "GET / HTTP/1.1\r\nHost: a\r\nX-Long: #{'a' * 300}\r\n\r\n"],
     [431, "GET / HTTP/1.1\r\nHost: a\r\n#{(1..12).map { |n| "X-#{n}: 1\r\n" }.join}\r\n"],
     [413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n"],
     [413, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n#{'a' * 2048}\r\n0\r\n\r\n"],
     [400, "GET / HTTP/1.1\r\n\r\n"],
     [400, "GET / HTTP/1.1\r\nHost: a\r\nBad Name: 1\r\n\r\n"],
     [505, "GET / HTTP/3.0\r\nHost: a\r\n\r\n"],
     [501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"]].each do |status, bytes|
      reply = raw(server, bytes).first
      assert_equal status, reply.status, bytes[0, 60]
      assert reply.complete, "the page for #{status} is whole"
    end
  end

  def test_a_head_that_never_ends_gets_408
    config "timeouts: {header: 300ms}\n"
    server = start
    assert_equal 408, raw(server, "GET / HTTP/1.1\r\nHost: a\r\n").first.status
  end

  def test_http_1_0_closes_unless_asked_to_keep
    server = start
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("GET / HTTP/1.0\r\n\r\n")
    assert_match(/\|0\|\z/, socket.read)
    socket.close
    replies = raw(server, "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", count: 2)
    assert_equal ["keep-alive"] * 2, replies.map { |reply| reply.headers["connection"] }
    assert_equal %w[GET|/1||0| GET|/2||0|], replies.map(&:body)
  end

  def test_ab_works_with_and_without_keep_alive
    server = start
    [[], ["-k"]].each do |options|
      out, status = Open3.capture2e("ab", "-q", "-n", "500", "-c", "10", *options, "http://127.0.0.1:#{server.port}/ab")
      assert status.success?, out
      assert_match(/Complete requests:\s+500/, out)
      assert_match(/Failed requests:\s+0/, out)
      assert_match(/Keep-Alive requests:\s+500/, out) if options == ["-k"]
    end
  end

  def test_a_half_closed_client_still_gets_its_answer
    server = start
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("GET /half HTTP/1.1\r\nHost: a\r\n\r\n")
    socket.close_write
    assert_includes socket.read, "GET|/half||0|"
    socket.close
  end

  def test_a_cut_upload_never_reaches_the_application
    app 'run(proc { |env| File.write("called", env["rack.input"].read.bytesize.to_s) if env["REQUEST_METHOD"] == "POST"; [200, {}, []] })'
    server = start
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n" + "a" * 3_000_000)
    socket.close
    5.times { assert_equal "200", get(server, "/").code }
    refute File.exist?(File.join(@dir, "called"))
  end

  def test_uploads_of_any_size_arrive_byte_identical
    app <<~RUBY
      require "digest"
      run(proc { |env| [200, {"content-type" => "text/plain"}, [Digest::SHA256.hexdigest(env["rack.input"].read)]] })
    RUBY
    server = start
    random = Random.new(7)
    [0, 1, 32_768, 32_769, 200_000, 20 << 20].each do |size|
      body = random.bytes(size)
      assert_equal Digest::SHA256.hexdigest(body), http(server, "/", method: "POST", body: body).body, "#{size} bytes"
    end
  end

  def test_the_head_of_a_pulse_is_at_most_100_bytes
    app 'run ->(_env) { [200, {"content-type" => "text/plain", "content-length" => "2"}, ["OK"]] }'
    server = start
    reply = raw(server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").first
    assert_operator reply.raw.bytesize, :<=, 100, reply.raw
    assert reply.headers["date"]
  end

  def test_listens_on_unix_ipv6_and_ipv4_at_once
    config %(listen: ["127.0.0.1:#{port = free_port}", "[::1]:#{port}", "unix:run/web.sock"]\n)
    start(:no_port)
    [TCPSocket.new("127.0.0.1", port), TCPSocket.new("::1", port), UNIXSocket.new(File.join(@dir, "run/web.sock"))].each do |socket|
      socket.write("GET /all HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal "GET|/all||0|", read_reply(socket).body
      socket.close
    end
  end

  def test_forwarded_fields_count_only_from_trusted_peers
    app <<~RUBY
      run(proc { |env|
        [200, {"content-type" => "text/plain"}, [env.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTP_X_FORWARDED_FOR", "HTTP_PROXY").inspect]]
      })
    RUBY
    config %(listen: ["127.0.0.1:#{port = free_port}", "unix:run/a.sock"]\n)
    start(:no_port)
    request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\nProxy: x\r\n\r\n"
    ask = lambda do |socket|
      socket.write(request)
      read_reply(socket).body
    ensure
      socket.close
    end
    assert_equal ["127.0.0.1", "http", "203.0.113.9", nil].inspect, ask.(TCPSocket.new("127.0.0.1", port))
    assert_equal ["203.0.113.9", "https", "203.0.113.9", nil].inspect, ask.(UNIXSocket.new(File.join(@dir, "run/a.sock")))
  end

  def test_an_exception_of_the_application_gets_a_page_of_ours_or_of_the_site
    app 'run(proc { |_env| raise "boom" })'
    server = start("-e", "production")
    page = get(server, "/")
    assert_equal "500", page.code
    assert_match(/application failed/, page.body)
    refute_match(/boom/, page.body)
    json = JSON.parse(get(server, "/", "Accept" => "application/json").body)
    assert_equal 500, json["status"]
    assert_match(/boom.*config\.ru:1/m, server.output)
    write "public/500.html", "<p>ours"
    eventually(3) { get(server, "/").body == "<p>ours" }
  end

  def test_an_exception_page_names_the_request
    config "limits: {target: 64}\n"
    server = start
    page = raw(server, "GET /#{'a' * 90} HTTP/1.1\r\nHost: a\r\n\r\n").first
    assert_match(/414/, page.body)
    json = raw(server, "GET /nowhere HTTP/2.9\r\nHost: a\r\nAccept: application/json\r\n\r\n").first
    assert_equal 505, json.status
    assert_match(/\A[0-9a-zA-Z@_-]+\z/, JSON.parse(json.body).fetch("request_id")) if json.headers["content-type"].to_s.include?("json")
  end
end
