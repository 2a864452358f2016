# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "digest"

# Slow clients hold no worker and nobody up.
class SlowTest < ServerCase
  QUICK = <<~'RUBY'
    run(proc { |env|
      case env["PATH_INFO"]
      when "/big" then [200, {"content-type" => "text/plain"}, ["x" * 100_000] * 100]
      when "/stream" then [200, {"content-type" => "text/plain"}, Enumerator.new { |list| 100.times { list << "x" * 100_000 } }]
      else [200, {"content-type" => "text/plain"}, [env["rack.input"].read.bytesize.to_s]]
      end
    })
  RUBY

  def setup
    super
    app QUICK
  end

  def clients(server, count, bytes)
    Array.new(count) { TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write(bytes) } }
  end

  # The longest of some requests by another client.
  def longest_wait(server, count = 20)
    Array.new(count) do
      begun = now
      assert_equal "200", get(server, "/").code
      now - begun
    end.max
  end

  def test_a_hundred_slow_uploads_hold_nobody_up
    server = start("-e", "production", "-w", "1", "-t", "1")
    slow = clients(server, 100, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n#{'a' * 50_000}")
    assert_operator longest_wait(server), :<, 0.5
    assert_equal 0, pool(server)["slots"]["busy"]
    slow.each { |socket| socket.write("a" * 50_000) }
    assert_equal ["100000"] * 100, slow.map { |socket| read_reply(socket).body }
    slow.each(&:close)
  end

  def test_heads_that_drip_end_together_whatever_they_send
    config "timeouts: {header: 1s}\n"
    server = start("-e", "production", "-w", "1", "-t", "1")
    begun = now
    dripping = clients(server, 50, "GET / HTTP/1.1\r\nHost: a\r\n")
    silent = clients(server, 20, "")
    until dripping.all? { |socket| socket.wait_readable(0) }
      dripping.each { |socket| socket.write("X") unless socket.wait_readable(0.002) }
      assert_operator now - begun, :<, 10
    end
    dripping.each { |socket| assert_equal 408, read_reply(socket).status }
    silent.each { |socket| assert_equal "", Timeout.timeout(10) { socket.read }, "nothing was asked, nothing is answered" }
    assert_operator longest_wait(server, 5), :<, 0.5
    (dripping + silent).each(&:close)
  end

  def test_an_idle_connection_ends_by_keepalive
    config "timeouts: {keepalive: 300ms}\n"
    server = start
    connect(server) do |socket|
      2.times do
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert_equal "0", read_reply(socket).body
      end
      assert_equal "", Timeout.timeout(10) { socket.read }
    end
  end

  def test_slow_readers_of_big_answers_leave_the_worker_free
    server = start("-e", "production", "-w", "1", "-t", "1")
    readers = clients(server, 20, "GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert_operator longest_wait(server), :<, 2.5
    eventually(10, "the only thread is free while nobody reads") { pool(server)["slots"]["busy"].zero? }
    front = processes(server, "front").first
    assert_operator File.read("/proc/#{front}/status")[/^RssAnon:\s+(\d+)/, 1].to_i, :<, 100_000 * memory_factor
    expected = Digest::SHA256.hexdigest("x" * 10_000_000)
    readers.first(5).each { |socket| assert_equal expected, Digest::SHA256.hexdigest(read_reply(socket).body) }
    readers.each(&:close)
  end

  def test_a_reader_of_nothing_is_cut_off_by_the_write_rate
    config "timeouts: {write_rate: 1000}\naccess_log: {file: log/access.log}\n"
    server = start("-e", "production", "-w", "1", "-t", "1")
    stuck = clients(server, 1, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n").first
    assert stuck.wait_readable(10)
    eventually(25, "it is given up") { File.exist?(path = File.join(@dir, "log/access.log")) && File.readlines(path).grep(%r{GET /big}).first }
    assert_operator (stuck.read rescue "").to_s.bytesize, :<, 10_000_000
    stuck.close
  end
end
