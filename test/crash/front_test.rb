# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# kill -9 of the front: only its connections are lost; a new one stands on the same listeners within a second.
class FrontCrashTest < ServerCase
  APP = <<~'RUBY'
    run(lambda do |env|
      name = env["PATH_INFO"].delete_prefix("/")
      text = {"content-type" => "text/plain"}
      File.write("at", name + "\n", mode: "a") unless name.empty?
      case name
      when "hold" then File.open("gate", "r").close
      when "stream"
        next [200, text, proc { |io|
          begin
            loop { io.write("x" * 50_000) }
          rescue IOError, SystemCallError => error
            File.write("at", "raised #{error.class.ancestors.include?(Errno::EPIPE) || error.is_a?(IOError)}\n", mode: "a")
          end
        }]
      end
      [200, text, [Process.pid.to_s]]
    end)
  RUBY

  def setup
    super
    app APP
    File.mkfifo(File.join(@dir, "gate"))
  end

  def at(word) = File.exist?(path = File.join(@dir, "at")) ? File.readlines(path, chomp: true).count(word) : 0

  def ask(server, path) = TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }

  # Kills the front and returns when the next one serves; how long nobody answered.
  def kill_front(server)
    front = processes(server, "front").first
    begun = now
    Process.kill("KILL", front)
    assert_equal "200", get(server, "/").code, "connections wait in the backlog"
    refute_includes processes(server, "front"), front
    now - begun
  end

  def quiet?(server) = pool(server).then { |seen| seen["slots"]["busy"].zero? && seen["queue"]["length"].zero? }

  def test_idle_and_with_open_connections
    server = start("-e", "production", "-w", "2", "-t", "2")
    before = workers(server)
    idle = Array.new(50) { ask(server, "/").tap { |socket| read_reply(socket) } }
    assert_operator kill_front(server), :<, 1
    idle.each { |socket| assert_nil((socket.read(1) rescue nil), "its connections are over") }
    assert_equal before.sort, workers(server).sort
    idle.each(&:close)
  end

  def test_while_workers_are_busy_and_requests_wait
    server = start("-e", "production", "-w", "2", "-t", "1")
    before = workers(server)
    held = Array.new(2) { ask(server, "/hold") }
    eventually(5) { at("hold") == 2 }
    waiting = Array.new(5) { ask(server, "/queued") }
    eventually(5) { pool(server)["queue"]["length"] == 5 }
    front = processes(server, "front").first
    Process.kill("KILL", front)
    eventually(2, "a new front") { (processes(server, "front") - [front]).any? }
    (held + waiting).each { |socket| (socket.read rescue nil) && socket.close }
    opener = Thread.new { File.open(File.join(@dir, "gate"), "w", &:close) until quiet?(server) }
    eventually(10, "the workers are free") { quiet?(server) }
    opener.join
    assert_equal "200", get(server, "/").code
    assert_equal 0, at("queued"), "what waited is gone with its clients"
    assert_equal before.sort, workers(server).sort
  end

  def test_half_way_in_answers_the_workers_are_told_and_live_on
    server = start("-e", "production", "-w", "2", "-t", "1")
    before = workers(server)
    readers = Array.new(2) { ask(server, "/stream").tap { |socket| socket.readpartial(1000) } }
    kill_front_while_busy(server)
    eventually(10, "both are told") { at("raised true") == 2 }
    eventually(5) { quiet?(server) }
    assert_equal before.sort, workers(server).sort
    assert_equal "200", get(server, "/").code
    readers.each(&:close)
  end

  def kill_front_while_busy(server)
    front = processes(server, "front").first
    Process.kill("KILL", front)
    eventually(2, "a new front") { (processes(server, "front") - [front]).any? }
  end

  def test_clients_that_connect_meanwhile_are_served
    server = start("-e", "production", "-w", "2", "-t", "2")
    front = processes(server, "front").first
    Process.kill("STOP", front)
    sockets = Array.new(30) { ask(server, "/") }
    Process.kill("KILL", front)
    eventually(2, "a new front") { (processes(server, "front") - [front]).any? }
    assert_equal [200] * 30, sockets.map { |socket| read_reply(socket).status }
    sockets.each(&:close)
  end

  # The first new front comes at once, the later ones after 1, 2 s: someone may be attacking.
  def test_again_and_again_leaves_nothing
    server = start("-e", "production", "-w", "2", "-t", "2")
    kill_front(server)
    count = -> { Dir.children("/proc/#{server.pid}/fd").size }
    eventually(5) { quiet?(server) }
    before = count.call
    2.times { kill_front(server) }
    eventually(5, "no descriptor stays") { count.call <= before }
    assert_equal 1, processes(server, "front").size
    assert_equal 0, stop(server)
  end
end
