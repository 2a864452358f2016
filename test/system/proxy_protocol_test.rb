# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "ipaddr"

# Connections that begin with a PROXY header: the client it names is the client, for whom it may name one.
class ProxyProtocolTest < ServerCase
  SIGNATURE = "\r\n\r\n\0\r\nQUIT\n".b
  ASK = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
  OLD = "GET / HTTP/1.0\r\n\r\n"

  def setup
    super
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, [env.values_at("REMOTE_ADDR", "SERVER_PORT", "PATH_INFO").join(" ")]] })'
  end

  # A server whose only listener has the key, and its port.
  def start_behind(more = "")
    config "listen: [{address: \"127.0.0.1:#{port = free_port}\", proxy_protocol: true}]\n#{more}"
    [start(:no_port), port]
  end

  # The bodies of the answers to what the client sends in one or more pieces.
  def ask(port, *pieces, count: 1)
    socket = TCPSocket.new("127.0.0.1", port)
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    pieces.each { |piece| socket.write(piece) }
    Array.new(count) { read_reply(socket).body }
  ensure
    socket&.close
  end

  # What a connection without a valid header gets to read.
  def refused(port, bytes)
    socket = TCPSocket.new("127.0.0.1", port)
    socket.write(bytes)
    Timeout.timeout(10) { socket.read }
  rescue Errno::ECONNRESET, Errno::EPIPE
    ""
  ensure
    socket&.close
  end

  def header(command, family, addresses, behind = "")
    SIGNATURE + [command, family, addresses.bytesize + behind.bytesize].pack("CCn") + addresses.b + behind.b
  end

  def test_the_client_is_the_one_that_the_header_names
    server, port = start_behind("access_log: {file: log/access.log}\n")
    ip4 = IPAddr.new("192.0.2.7").hton + IPAddr.new("198.51.100.1").hton + [56_324, 8443].pack("nn")
    ip6 = IPAddr.new("2001:db8::7").hton + IPAddr.new("2001:db8::1").hton + [56_324, 443].pack("nn")
    unix = "/run/client.sock".ljust(108, "\0") + "/run/server.sock".ljust(108, "\0")
    assert_equal ["192.0.2.7 8443 /"], ask(port, "PROXY TCP4 192.0.2.7 198.51.100.1 56324 8443\r\n#{OLD}")
    assert_equal ["2001:db8::7 443 /"], ask(port, "PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\n#{OLD}")
    assert_equal ["127.0.0.1 #{port} /"], ask(port, "PROXY UNKNOWN\r\n#{OLD}")
    assert_equal ["192.0.2.7 8443 /"], ask(port, header(0x21, 0x11, ip4) + OLD)
    assert_equal ["2001:db8::7 443 /"], ask(port, header(0x21, 0x21, ip6) + OLD)
    assert_equal ["127.0.0.1 80 /"], ask(port, header(0x21, 0x31, unix) + OLD)
    assert_equal ["127.0.0.1 #{port} /"], ask(port, header(0x20, 0x00, "") + OLD), "LOCAL is the balancer's own probe"
    assert_equal ["192.0.2.7 80 /x"] * 3, ask(port, header(0x21, 0x11, ip4, "\x04\0\x03abc") + (ASK * 3), count: 3), "for every request"
    assert_equal ["192.0.2.7 80 /x"], ask(port, header(0x21, 0x11, ip4, "\x04\xff\xff" + ("t" * 60_000)) + ASK), "what it adds is skipped"
    lines = eventually(5) { File.readlines(File.join(@dir, "log/access.log")).then { |list| list if list.size == 11 } }
    assert_equal %w[192.0.2.7 2001:db8::7 127.0.0.1 192.0.2.7 2001:db8::7 127.0.0.1 127.0.0.1] + ["192.0.2.7"] * 4, lines.map { |line| line.split.first }
    assert_empty server.output.lines.grep(/proxy_protocol/)
  end

  def test_a_header_may_come_in_pieces
    _, port = start_behind
    line = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 8443\r\n#{ASK}"
    binary = header(0x21, 0x11, [192, 0, 2, 7, 198, 51, 100, 1, 1, 1].pack("C8n2"), "tlv" * 100) + ASK
    assert_equal ["192.0.2.7 80 /x"], ask(port, *line.chars)
    assert_equal ["192.0.2.7 80 /x"], ask(port, *binary.each_char)
    [1, 5, 6, 20, 44, 46].each { |at| assert_equal ["192.0.2.7 80 /x"], ask(port, line[0, at], line[at..]) }
  end

  def test_what_is_no_header_gets_no_answer_and_one_line
    server, port = start_behind("timeouts: {header: 1s}\n")
    valid = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 8443\r\n"
    [ASK, "PROXY TCP4 1.2.3 4.5.6.7 1 2\r\n#{ASK}", "PROXY TCP4 192.0.2.7 198.51.100.1 56324\r\n#{ASK}", "PROXY UNKNOWN #{'x' * 200}\r\n#{ASK}",
     header(0x21, 0x11, "short") + ASK, header(0x31, 0x11, "x" * 12) + ASK, header(0x21, 0x55, "x" * 12) + ASK].each do |bytes|
      assert_equal "", refused(port, bytes), bytes.inspect
    end
    assert_match(/\AHTTP\/1.1 400 /, refused(port, valid + valid + ASK), "only one")
    begun = now
    assert_equal ["", ""], ["PROXY TCP4 192.0.2.7", ""].map { |bytes| refused(port, bytes) }, "it has the time of a head"
    assert_operator now - begun, :>, 1
    assert_equal 1, server.output.lines.grep(/warn proxy_protocol: 127\.0\.0\.1 /).size
    assert_equal ["192.0.2.7 80 /x"], ask(port, valid + ASK)
    eventually(5) { status(server)["connections"]["open"].zero? }
  end

  def test_a_peer_outside_the_list_names_nobody
    _, port = start_behind("trusted_proxies: [unix, 203.0.113.9]\n")
    assert_equal ["127.0.0.1 80 /x"], ask(port, "PROXY TCP4 192.0.2.7 198.51.100.1 56324 8443\r\n#{ASK}")
  end

  # The named client is the peer whose forwarded fields may count.
  def test_forwarded_fields_are_those_of_the_named_client
    _, port = start_behind("trusted_proxies: [loopback, 192.0.2.7]\n")
    fields = "X-Forwarded-For: 203.0.113.5\r\nX-Forwarded-Proto: https\r\n"
    forwarded = ASK.sub("\r\n\r\n", "\r\n#{fields}\r\n")
    assert_equal ["203.0.113.5 443 /x"], ask(port, "PROXY TCP4 192.0.2.7 198.51.100.1 1 8443\r\n#{forwarded}")
    assert_equal ["192.0.2.8 80 /x"], ask(port, "PROXY TCP4 192.0.2.8 198.51.100.1 1 8443\r\n#{forwarded}")
  end

  def test_a_peer_whose_forwarded_fields_do_not_count_is_named_once
    server = start
    3.times { get(server, "/", "X-Forwarded-For" => "203.0.113.5", "X-Forwarded-Proto" => "https") }
    get(server, "/")
    assert_equal 1, server.output.lines.grep(/warn peer=127\.0\.0\.1 .*trusted_proxies/).size
  end

  def test_a_header_on_another_listener_is_a_bad_request
    server = start
    assert_equal 400, raw(server, "PROXY TCP4 192.0.2.7 198.51.100.1 56324 8443\r\n#{ASK}").first.status
  end

  def test_a_stop_does_not_wait_for_headers
    config "listen: [{address: \"127.0.0.1:#{port = free_port}\", proxy_protocol: true}]\n"
    server = start(:no_port, "-e", "production", "-w", "1")
    waiting = Array.new(20) { TCPSocket.new("127.0.0.1", port) }
    eventually(5) { status(server)["connections"]["open"] == 20 }
    begun = now
    assert_equal 0, stop(server)
    assert_operator now - begun, :<, 5
    waiting.each(&:close)
  end
end
