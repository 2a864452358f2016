# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Many clients, slow clients, large things: memory stays bounded, workers stay free, a witness notices
# nothing, and all is as before when they have gone.
class CrowdTest < ServerCase
  APP = <<~'RUBY'
    BIG = ["x" * 100_000] * 100
    run(proc { |env|
      case env["PATH_INFO"]
      when "/big" then [200, {"content-type" => "application/octet-stream"}, BIG]
      when "/size" then [200, {"content-type" => "text/plain"}, [env["rack.input"].then { |input| sum = 0; buffer = +""; sum += buffer.bytesize while input.read(65536, buffer); sum.to_s }]]
      when "/download" then [200, {"content-type" => "application/octet-stream"}, Enumerator.new { |list| part = "x" * 100_000; 3000.times { list << part } }]
      when "/sleep" then sleep 0.02; [200, {"content-type" => "text/plain"}, ["ok"]]
      when "/hold" then sleep 0.5; [200, {"content-type" => "text/plain"}, ["x" * 100_000]]
      else [200, {"content-type" => "text/plain"}, ["ok"]]
      end
    })
  RUBY
  REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  def setup
    super
    app APP
    @files = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, @files.last, @files.last)
    @clients = []
  end

  def teardown
    @clients.each(&:close)
    Process.setrlimit(:NOFILE, *@files)
    super
  end

  def begin_server(*options, more: "")
    config more
    @server = start("-e", "production", *options)
    @front = processes(@server, "front").first
    2.times { assert_equal "200", get(@server, "/").code }
    @server
  end

  def clients(count, bytes = nil)
    added = Array.new(count) { TCPSocket.new("127.0.0.1", @server.port) }
    added.each { |socket| socket.write(bytes) } if bytes
    @clients.concat(added)
    added
  end

  # As many clients as this process may have, in thousands: each takes a descriptor.
  def clients_up_to(most) = [most, (@files.last - 500).floor(-3)].min.tap { |count| assert_operator count, :>=, 3000 }

  def leave
    @clients.each(&:close)
    @clients.clear
    eventually(10, "all connections are gone") { status(@server)["connections"]["open"].zero? }
  end

  def memory_kb(pid = @front) = File.read("/proc/#{pid}/status")[/^RssAnon:\s+(\d+)/, 1].to_i

  # A sanitizer keeps what was freed for a while, so that its size says nothing.
  def assert_grown(kilobytes, limit, of_what = "memory")
    assert_operator kilobytes, :<, limit, of_what if memory_factor == 1
  end

  # The median time of some requests on connections of their own.
  def usual_wait
    Array.new(30) { begun = now; assert_equal("200", get(@server, "/").code); now - begun }.sort[15]
  end

  # --- F26

  def test_ten_thousand_idle_connections_cost_little_and_are_given_back
    thousands = clients_up_to(10_000) / 1000
    begin_server("-w", "1")
    usual = usual_wait
    before = memory_kb
    thousands.times do
      clients(1000, REQUEST).each { |socket| socket.readpartial(4096) }
    end
    assert_equal thousands * 1000, status(@server)["connections"]["idle"]
    assert_grown memory_kb - before, thousands * 4_000
    assert_operator usual_wait, :<, (usual * 3) + 0.005
    with_witness(@server) { leave }
    eventually(5, "the memory is the system's again") { memory_factor > 1 || memory_kb - before < 8_000 }
  end

  def test_opening_and_closing_leaves_nothing
    begin_server("-w", "1")
    rounds = lambda do |count|
      count.times { clients(100).each(&:close) && @clients.clear }
      leave
      memory_kb
    end
    before = rounds.(20)
    assert_grown rounds.(80) - before, 4_000
  end

  # --- F27

  def test_a_thousand_that_drip_hold_no_worker_and_nobody_up
    begin_server("-w", "1", "-t", "1", more: "timeouts: {header: 3s}\n")
    before = memory_kb
    heads = clients(400, "GET / HTTP/1.1\r\nHost: a\r\n")
    bodies = clients(300, "POST /size HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
    chunks = clients(300, "POST /size HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    with_witness(@server, longest: 1.0) do
      10.times do |round|
        heads.each { |socket| socket.write("X") }
        bodies.each { |socket| socket.write("a") }
        chunks.each { |socket| socket.write("1\r\n#{round}\r\n") }
        assert_operator pool(@server)["slots"]["busy"], :<=, 1, "none but the witness"
      end
      chunks.each { |socket| socket.write("0\r\n\r\n") }
      assert_equal ["10"] * 300, chunks.map { |socket| read_reply(socket).body }
      assert_equal [408] * 400, heads.map { |socket| read_reply(socket).status }
    end
    assert_grown memory_kb - before, 100_000
    assert_equal 0, status(@server)["pools"][0]["queue"]["length"]
    leave
  end

  # --- F28

  def test_many_that_read_slowly_leave_the_worker_free_and_memory_bounded
    begin_server("-w", "1", "-t", "1", more: "timeouts: {write_rate: 1000}\n")
    before = memory_kb
    readers = Array.new(100) do
      socket = Socket.new(:INET, :STREAM)
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_RCVBUF, 4096)
      socket.connect(Addrinfo.tcp("127.0.0.1", @server.port))
      socket.write("GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
      @clients << socket
      socket
    end
    eventually(60, "the worker is free while nobody reads") { pool(@server).then { |seen| seen["queue"]["length"].zero? && seen["slots"]["busy"].zero? } }
    assert_grown memory_kb - before, 100_000
    with_witness(@server, longest: 1.0) do
      readers.first(3).each { |socket| assert_equal 10_000_000, read_reply(socket, seconds: 60).body.bytesize }
    end
    eventually(30, "those that read nothing are given up") { status(@server)["connections"]["open"] <= 3 }
    leave
    eventually(5, "their files are gone") { Dir.children("/proc/#{@front}/fd").none? { |fd| File.readlink("/proc/#{@front}/fd/#{fd}").include?("(deleted)") rescue false } }
    assert_grown memory_kb - before, 50_000
  end

  def test_a_full_spool_is_back_pressure_and_no_cut
    begin_server("-w", "1", "-t", "4", more: "limits: {body: 5m, spool: 5m}\n")
    readers = clients(4, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
    readers.each { |socket| assert_equal 10_000_000, read_reply(socket, seconds: 60).body.bytesize }
    assert_equal "ok", get(@server, "/").body
  end

  # --- F29

  def test_clients_that_leave_free_what_they_held
    begin_server("-w", "1", "-t", "2")
    with_witness(@server, longest: 3.0) do
      [0, 0.2].each do |seconds|
        leaving = clients(2, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n")
        IO.select(leaving, nil, nil, seconds)
        leaving.each { |socket| reset(socket) }
        @clients.clear
      end
      100.times do
        leaving = clients(3, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        leaving.each { |socket| socket.readpartial(1000) && reset(socket) }
        @clients.clear
      end
      socket = clients(1, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").first
      socket.close_write
      assert_equal 100_000, read_reply(socket).body.bytesize, "a half-close is no leaving"
    end
    leave
    eventually(5) { pool(@server).then { |seen| seen["queue"]["length"].zero? && seen["slots"]["busy"].zero? } }
    eventually(5) { Dir.children("/proc/#{@front}/fd").none? { |fd| File.readlink("/proc/#{@front}/fd/#{fd}").include?("(deleted)") rescue false } }
  end

  # --- F36

  # Asks again and again for the seconds, each time on a connection of its own; the statuses.
  def ask_for(seconds, threads)
    limit = now + seconds
    Array.new(threads) do
      Thread.new do
        seen = []
        seen << get(@server, "/sleep").code.to_i while now < limit
        seen
      end
    end.flat_map(&:value)
  end

  def test_ten_times_too_much_is_served_as_far_as_it_goes_and_refused_beyond
    begin_server("-w", "2", "-t", "1", more: "queue: {length: 10, timeout: 5s}\n")
    before = memory_kb
    capacity = ask_for(2, 4).count(200)
    seen = ask_for(4, 40).tally
    assert_equal [200, 503], seen.keys.sort
    assert_operator seen[200], :>, capacity * 2 * 0.7
    eventually(1, "all is quiet") { pool(@server).then { |now| now["queue"]["length"].zero? && now["slots"]["busy"].zero? } }
    assert_operator usual_wait, :<, 0.1
    assert_grown memory_kb - before, 20_000
    assert_equal seen[503], pool(@server)["queue"].values_at("shed", "expired").sum
  end

  # --- F37

  def test_thousands_at_the_same_instant_are_all_answered
    count = clients_up_to(5000)
    begin_server("-w", "2", "-t", "2", more: "queue: {length: 6000}\n")
    address = Addrinfo.tcp("127.0.0.1", @server.port)
    sockets = Array.new(count) { Socket.new(:INET, :STREAM) }
    @clients.concat(sockets)
    sockets.each { |socket| socket.connect_nonblock(address, exception: false) }
    waiting = sockets.to_h { |socket| [socket, true] }
    until waiting.empty?
      ready = IO.select(nil, waiting.keys, nil, 30)
      assert ready, "#{waiting.size} are not connected"
      ready[1].each { |socket| waiting.delete(socket) && socket.write(REQUEST) }
    end
    assert_equal({ 200 => count }, sockets.map { |socket| read_reply(socket, seconds: 30).status }.tally)
    leave
  end

  # --- F38

  def test_large_bodies_pass_in_constant_memory
    begin_server("-w", "1", "-t", "1")
    worker = workers(@server).first
    peaks = [@front, worker].to_h { |pid| [pid, memory_kb(pid)] }
    before = peaks.dup
    over, ended = IO.pipe
    watcher = Thread.new { peaks.each_key { |pid| peaks[pid] = [peaks[pid], memory_kb(pid)].max } until over.wait_readable(0.01) }
    part = "x" * 1_000_000
    [["Content-Length: 300000000", part, ""], ["Transfer-Encoding: chunked", "f4240\r\n#{part}\r\n", "0\r\n\r\n"]].each do |framing, piece, last|
      connect(@server) do |socket|
        socket.write("POST /size HTTP/1.1\r\nHost: a\r\n#{framing}\r\n\r\n")
        300.times { socket.write(piece) }
        socket.write(last)
        assert_equal "300000000", read_reply(socket, seconds: 60).body
      end
    end
    connect(@server) do |socket|
      socket.write("GET /download HTTP/1.0\r\n\r\n")
      socket.gets("\r\n\r\n")
      assert_equal 300_000_000, IO.copy_stream(socket, File::NULL)
    end
    ended.close
    watcher.join
    assert_grown peaks[@front] - before[@front], 10_000, "the front"
    assert_grown peaks[worker] - before[worker], 30_000, "the worker"
  end

  def test_a_file_beyond_four_gigabytes_has_every_byte
    size = 5_000_000_000
    write("public/large", "")
    File.open(File.join(@dir, "public/large"), "r+b") do |file|
      file.truncate(size)
      [0, (1 << 32) - 2, size - 4].each { |at| file.pwrite(format("%04d", at % 10_000), at) }
    end
    begin_server("-w", "1")
    assert_equal size.to_s, http(@server, "/large", method: "HEAD")["content-length"]
    { "4294967294-4294967297" => "7294", "-4" => "9996", "4999999996-" => "9996", "0-3" => "0000" }.each do |range, text|
      reply = get(@server, "/large", "Range" => "bytes=#{range}")
      assert_equal ["206", text], [reply.code, reply.body], range
      assert_equal size.to_s, reply["content-range"][%r{/(\d+)}, 1]
    end
    assert_equal "416", get(@server, "/large", "Range" => "bytes=5000000000-").code
    before = memory_kb
    connect(@server) do |socket|
      socket.write("GET /large HTTP/1.1\r\nHost: a\r\nRange: bytes=4200000000-\r\n\r\n")
      assert_equal "800000000", socket.gets("\r\n\r\n")[/content-length: (\d+)/i, 1]
      assert_equal 800_000_000, IO.copy_stream(socket, File::NULL, 800_000_000)
    end
    assert_grown memory_kb - before, 5_000
  end
end
