# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Clients and applications that mean harm: each gets a visible end, others notice nothing, nothing stays.
class HostileTest < ServerCase
  def setup
    super
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, [env["PATH_INFO"]]] })'
  end

  def memory_kb(pid) = File.read("/proc/#{pid}/status")[/^RssAnon:\s+(\d+)/, 1].to_i

  def descriptors(pid) = Dir.children("/proc/#{pid}/fd").size

  def send_all(server, bytes)
    connect(server) do |socket|
      socket.write(bytes)
      socket.close_write
      Timeout.timeout(20) { socket.read }
    end
  rescue Errno::ECONNRESET, Errno::EPIPE
    ""
  end

  def test_what_is_no_http_gets_an_end_and_nothing_stays
    server = start("-e", "production", "-w", "1")
    front = processes(server, "front").first
    get(server, "/")
    before = descriptors(front)
    random = Random.new(11)
    hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".b + random.bytes(500)
    preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00".b
    with_witness(server) do
      100.times { send_all(server, random.bytes(random.rand(1..3000))) }
      [hello, preface, "\r\n" * 50_000, "\0" * 10_000, "GET / HTTP/1.1\r\n" * 5000, "SSH-2.0-OpenSSH_9.2\r\n", "{}\n", "GET /\r\n\r\n"].each do |bytes|
        refute_match(%r{HTTP/1\.1 (2|500)}, send_all(server, bytes), bytes[0, 30].inspect)
      end
    end
    eventually(5, "no descriptor stays") { descriptors(front) <= before }
    assert_equal [front], processes(server, "front")
  end

  def test_heads_without_end_are_refused_in_bounded_memory
    server = start("-e", "production", "-w", "1")
    front = processes(server, "front").first
    get(server, "/")
    before = memory_kb(front)
    ["GET /#{'a' * 2_000_000}", "GET / HTTP/1.1\r\nHost: a\r\nX: #{'b' * 2_000_000}", "GET / HTTP/1.1\r\nHost: a\r\n#{"X: y\r\n" * 200_000}",
     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;#{'e' * 2_000_000}",
     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n#{"X: y\r\n" * 200_000}"].each do |bytes|
      20.times do
        connect(server) do |socket|
          writer = Thread.new { socket.write(bytes) rescue nil }
          assert_includes [400, 414, 431], read_reply(socket).status, bytes[0, 70]
          writer.kill.join
        end
      end
    end
    assert_operator memory_kb(front) - before, :<, 8_000 * memory_factor
  end

  def test_a_client_that_asks_and_asks_and_never_reads_is_bounded
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["x" * 10_000]] })'
    server = start("-e", "production", "-w", "1")
    front = processes(server, "front").first
    get(server, "/")
    before = memory_kb(front)
    connect(server) do |socket|
      requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
      taken = 0
      while taken < 50_000_000 && socket.wait_writable(0.5)
        sent = socket.write_nonblock(requests, exception: false)
        taken += sent if sent.is_a?(Integer)
      end
      assert_operator taken, :<, 50_000_000, "it is not read for ever"
      with_witness(server) { 5.times { assert_equal "200", get(server, "/").code } }
      assert_operator memory_kb(front) - before, :<, 20_000 * memory_factor
    end
  end

  def test_a_thousand_clients_at_once_are_all_answered
    server = start("-e", "production", "-w", "2", "-t", "3")
    sockets = Array.new(1000) { TCPSocket.new("127.0.0.1", server.port) }
    sockets.each { |socket| socket.write("GET /x HTTP/1.1\r\nHost: a\r\n\r\n") }
    assert_equal({ [200, "/x"] => 1000 }, sockets.map { |socket| read_reply(socket).to_a.values_at(0, 2) }.tally)
    sockets.each { |socket| reset(socket) }
    eventually(5) { status(server)["connections"]["open"].zero? }
  end

  def test_no_descriptors_left_is_no_spin_and_heals
    server = start("-e", "production", "-w", "1")
    front = processes(server, "front").first
    assert system("prlimit", "--pid", front.to_s, "--nofile=#{descriptors(front) + 20}")
    idle = Array.new(60) { TCPSocket.new("127.0.0.1", server.port) }
    ticks = -> { File.read("/proc/#{front}/stat").split(") ").last.split.values_at(11, 12).sum(&:to_i) }
    before, begun = ticks.call, now
    IO.select(idle, nil, nil, 1.5)
    assert_operator (ticks.call - before) / 100.0, :<, 0.15 * (now - begun), "share of a processor"
    assert_operator server.output.lines.size, :<, 60
    idle.each(&:close)
    eventually(3, "served again") { get(server, "/").code == "200" rescue false }
    assert_equal [front], processes(server, "front")
  end

  def test_connections_over_the_limit_are_told_or_take_the_place_of_idle_ones
    config "limits: {connections: 20}\n"
    server = start("-e", "production", "-w", "1")
    idle = Array.new(40) { TCPSocket.new("127.0.0.1", server.port) }
    reply = connect(server) do |socket|
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      read_reply(socket)
    end
    assert_includes [200, 503], reply.status
    assert_operator status(server)["connections"]["open"], :<=, 21
    idle.each(&:close)
    eventually(3) { get(server, "/").code == "200" }
  end

  def test_an_application_that_closes_what_is_not_its_own_is_replaced
    app <<~'RUBY'
      run(proc { |env|
        (3..400).each { |number| IO.for_fd(number, autoclose: false).close rescue nil } if env["PATH_INFO"] == "/close"
        [200, {"content-type" => "text/plain"}, [Process.pid.to_s]]
      })
    RUBY
    server = start("-e", "production", "-w", "2", "-t", "1")
    front = processes(server, "front")
    with_witness(server, longest: 5.0) do
      3.times { http(server, "/close", method: "POST", body: "") }
      eventually(10, "two workers serve") { workers(server).size == 2 && Array.new(10) { get(server, "/").body }.uniq.size == 2 }
    end
    assert_equal front, processes(server, "front")
  end

  where root?, "root" do
    def test_signals_from_the_application_reach_no_other_process
      app <<~'RUBY'
        run(proc { |env|
          seen = []
          Dir.glob("/proc/[0-9]*/cmdline") { |file| seen << file[/\d+/].to_i if File.read(file).match?(/\Aleat: (front|master)/) rescue nil }
          tried = seen.map { |pid| Process.kill(0, pid) && :may rescue $!.class }
          [200, {"content-type" => "text/plain"}, [tried.uniq.inspect]]
        })
      RUBY
      FileUtils.chmod(0o755, @dir)
      config "user: nobody\ngroup: nogroup\npools: {main: {app: ., user: daemon}}\n"
      server = start("-e", "production", "-w", "1")
      assert_equal "[Errno::EPERM]", get(server, "/").body
    end
  end
end
