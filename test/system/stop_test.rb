# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# A stop under load: a client is served, or finds nobody there; nothing in between.
class StopTest < ServerCase
  REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n"

  def setup
    super
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["ok"]] })'
  end

  # Asks on a connection each until nobody listens, and counts what happened.
  def asker(server)
    Thread.new do
      seen = Hash.new(0)
      until seen.key?(:refused)
        begin
          connect(server) do |socket|
            socket.write("#{REQUEST}Connection: close\r\n\r\n")
            seen[socket.read[0, 12]] += 1
          end
        rescue Errno::ECONNREFUSED
          seen[:refused] += 1
        rescue SystemCallError => error
          seen[error.class] += 1
        end
      end
      seen
    end
  end

  # Asks on one connection until an answer says that it is the last.
  def stayer(server)
    Thread.new do
      connect(server) do |socket|
        loop do
          socket.write("#{REQUEST}\r\n")
          reply = read_reply(socket)
          break [reply.status, reply.body, socket.read] if reply.headers["connection"] == "close"
        end
      end
    rescue SystemCallError, IOError => error
      error
    end
  end

  def test_clients_that_connect_are_served_or_refused_and_never_reset
    3.times do
      server = start("-e", "production", "-w", "2")
      clients = Array.new(20) { asker(server) }
      eventually(10) { status(server)["requests"]["total"] > 500 }
      assert_equal 0, stop(server)
      seen = clients.map(&:value).each_with_object(Hash.new(0)) { |one, all| one.each { |what, count| all[what] += count } }
      assert_equal({ "HTTP/1.1 200" => 0, refused: 20 }, seen.merge("HTTP/1.1 200" => 0))
    end
  end

  def test_clients_that_stay_are_told_with_their_last_answer
    server = start("-e", "production", "-w", "2")
    clients = Array.new(20) { stayer(server) }
    eventually(10) { status(server)["requests"]["total"] > 500 }
    assert_equal 0, stop(server)
    assert_equal [[200, "ok", ""]] * 20, clients.map(&:value)
  end

  def test_idle_connections_hold_a_stop_up_for_a_moment_only
    server = start
    sockets = Array.new(50) { TCPSocket.new("127.0.0.1", server.port) }
    sockets.first(25).each { |socket| socket.write("#{REQUEST}\r\n") && read_reply(socket) }
    begun = now
    assert_equal 0, stop(server)
    assert_operator now - begun, :<, 3
    sockets.each { |socket| assert_equal("", socket.read) && socket.close }
  end

  # Its head promised more requests, so its client stays.
  def test_an_answer_that_outlives_the_moment_does_not_hold_the_stop_up
    app 'run(proc { |env| [200, {"content-type" => "text/plain", "content-length" => "40"}, Enumerator.new { |list| 20.times { list << "xy"; sleep 0.05 } }] })'
    server = start
    connect(server) do |socket|
      socket.write("#{REQUEST}\r\n")
      assert socket.wait_readable(10)
      begun = now
      assert_equal 0, stop(server)
      assert_operator now - begun, :<, 5
      assert_equal "xy" * 20, read_reply(socket).body
      assert_equal "", socket.read
    end
  end
end
