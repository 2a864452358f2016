# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# A disk that takes its time over one file (test/shim/slow_disk.c): who asks for that file waits, and
# nobody else, however many ask.
class SlowDiskTest < ServerCase
  SHIM = File.join(ROOT, "test/shim/slow_disk.c")
  CROWD = 40
  OTHERS = 60

  def setup
    super
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, [env["PATH_INFO"]]] })'
    @gate = File.join(@dir, "gate")
    shim = File.join(@dir, "slow_disk.so")
    out, status = Open3.capture2e("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", shim, SHIM, "-ldl")
    assert status.success?, out
    @slowly = { "LD_PRELOAD" => shim, "SLOW_NAME" => "slow", "SLOW_GATE" => @gate,
                "ASAN_OPTIONS" => "#{ENV['ASAN_OPTIONS']}:verify_asan_link_order=0" }
  end

  def teardown
    open_gate
    super
  end

  def open_gate = File.write(@gate, "")

  def ask(server, path)
    TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }
  end

  # Nothing has come, or no more than a head.
  def waits?(socket)
    return true unless socket.wait_readable(0)

    socket.recv_nonblock(100_000, Socket::MSG_PEEK).end_with?("\r\n\r\n")
  end

  # Everybody else is answered while the crowd waits, and then the crowd.
  def assert_only_the_crowd_waits(server, paths)
    crowd = Array.new(CROWD) { |number| ask(server, paths[number % paths.size]) }
    bodies = OTHERS.times.map do |number|
      get(server, "/#{number}").body + get(server, "/cold-#{number}.txt").body
    end
    assert_equal Array.new(OTHERS) { |number| "/#{number}cold #{number}" }, bodies
    assert_equal CROWD, crowd.count { |socket| waits?(socket) }, "the disk has not answered yet"
    open_gate
    yield crowd.map { |socket| read_reply(socket) }
  ensure
    crowd&.each(&:close)
  end

  def write_cold = OTHERS.times { |number| write("public/cold-#{number}.txt", "cold #{number}") }

  def test_who_asks_for_a_file_that_is_slow_to_open_waits_alone
    write_cold
    write("public/slow.txt", "at last")
    server = start("-e", "production", "-w", "1", env: @slowly)
    assert_only_the_crowd_waits(server, ["/slow.txt"]) do |replies|
      assert_equal [[200, "at last"]], replies.map { |reply| [reply.status, reply.body] }.uniq
    end
  end

  def test_who_asks_for_files_that_are_slow_to_read_waits_alone
    write_cold
    large = Random.new(3).bytes(300_000)
    write("public/slow.bin", large)
    server = start("-e", "production", "-w", "1", env: @slowly)
    assert_only_the_crowd_waits(server, ["/slow.bin"]) do |replies|
      assert_equal [[200, true]], replies.map { |reply| [reply.status, reply.body == large] }.uniq
    end
  end

  def test_a_file_that_the_application_names_is_read_elsewhere_too
    write_cold
    path = write("slow.bin", Random.new(4).bytes(300_000))
    app <<~RUBY
      run(proc { |env|
        next [200, {"content-type" => "text/plain", "x-sendfile" => #{path.inspect}}, []] if env["PATH_INFO"] == "/named"
        [200, {"content-type" => "text/plain"}, [env["PATH_INFO"]]]
      })
    RUBY
    config "env: {SLOW_GATE: ''}\n" # the worker itself has nothing to wait for
    server = start("-e", "production", "-w", "1", env: @slowly)
    assert_only_the_crowd_waits(server, ["/named"]) do |replies|
      assert_equal [[200, true]], replies.map { |reply| [reply.status, reply.body == File.binread(path)] }.uniq
    end
  end
end
