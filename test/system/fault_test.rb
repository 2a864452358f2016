# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "digest"

# Faults of the system around the server: descriptors, disks, signals and calls that fail. Each has a
# visible end, others notice nothing, and all is as before afterwards.
class FaultTest < ServerCase
  APP = <<~'RUBY'
    run(proc { |env|
      case env["PATH_INFO"]
      when "/echo" then [200, {"content-type" => "application/octet-stream"}, [env["rack.input"].read]]
      when "/big" then [200, {"content-type" => "application/octet-stream"}, Array.new(40) { |number| number.chr * 50_000 }]
      when "/stream" then [200, {"content-type" => "text/plain"}, Enumerator.new { |list| 200.times { |number| list << number.to_s * 500 } }]
      else [200, {"content-type" => "text/plain"}, ["ok"]]
      end
    })
  RUBY

  def setup
    super
    app APP
  end

  def begin_server(*options, more: "")
    config more
    @server = start("-e", "production", "-t", "1", *options)
    @front = processes(@server, "front").first
    assert_equal 200_000, http(@server, "/echo", method: "POST", body: "x" * 200_000).body.bytesize, "the worker has its connection"
    assert_includes %w[200 404], get(@server, "/file.txt").code
    @server
  end

  def descriptors(pid) = Dir.children("/proc/#{pid}/fd").size

  def memory_kb(pid) = File.read("/proc/#{pid}/status")[/^RssAnon:\s+(\d+)/, 1].to_i

  # Seconds of a processor that a process has used.
  def used(pid) = File.read("/proc/#{pid}/stat").split(") ").last.split.values_at(11, 12).sum(&:to_i) / 100.0

  def idle_clients(count)
    Array.new(count) do
      TCPSocket.new("127.0.0.1", @server.port).tap do |socket|
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        read_reply(socket)
      end
    end
  end

  # A request that may be refused, with its status.
  def try(path = "/", **options) = http(@server, path, **options).code.to_i

  # The block runs while strace makes calls of a process fail.
  def with_calls(pid, *injections)
    log = File.join(@dir, "strace")
    calls = injections.map { |injection| injection[/\A[^:]+/] }.join(",")
    argv = ["strace", "-f", "-q", "-p", pid.to_s, "-o", log, "-e", "trace=#{calls}", *injections.flat_map { |injection| ["-e", "inject=#{injection}"] }]
    tracer = spawn_child(*argv, err: "/dev/null")
    eventually(10, "strace watches") { File.read("/proc/#{pid}/status")[/^TracerPid:\s+(\d+)/, 1] == tracer.to_s }
    yield
    Process.kill("TERM", tracer)
    wait_exit(tracer)
    assert_match(/INJECTED/, File.read(log))
  end

  def assert_served_as_before(descriptors_before)
    eventually(1, "served again") { try == 200 }
    eventually(5, "no descriptor stays") { descriptors(@front) <= descriptors_before }
    assert_equal [@front], processes(@server, "front")
    assert_equal 0, pool(@server)["slots"]["busy"]
  end

  # --- F01

  def test_without_descriptors_idle_connections_go_and_the_witness_is_served
    begin_server("-w", "1")
    before = descriptors(@front)
    assert system("prlimit", "--pid", @front.to_s, "--nofile=#{before + 60}:#{before + 60}")
    kept = idle_clients(50)
    more = Array.new(100) { TCPSocket.new("127.0.0.1", @server.port) }
    statuses = Array.new(20) { try rescue 503 }
    assert_equal [], statuses - [200, 503]
    assert_includes statuses, 200
    refute_empty kept.select { |socket| socket.wait_readable(0) && socket.read.empty? }, "the longest idle have gone"
    begun, spent = now, used(@front)
    IO.select(kept.reject(&:closed?).reject { |socket| socket.wait_readable(0) }, nil, nil, 1)
    assert_operator used(@front) - spent, :<, 0.1 * [now - begun, 1].max, "no spin"
    assert_operator @server.output.lines.grep(/accept: /).size, :<=, 1, "one line a minute"
    (kept + more).each(&:close)
    assert_served_as_before(before)
  end

  # --- F02

  def test_a_call_that_fails_costs_its_own_request_alone
    write("public/cold.txt", "static")
    begin_server("-w", "1")
    before = descriptors(@front)
    with_calls(@front, "openat:error=EMFILE") do
      50.times do
        assert_includes [500, 503], try("/cold.txt")
        assert_equal 503, try("/echo", method: "POST", body: "x" * 200_000)
        assert_equal 200, try("/echo", method: "POST", body: "small")
        assert_equal 200, try("/", method: "OPTIONS")
      end
    end
    assert_equal "static", get(@server, "/cold.txt").body
    assert_served_as_before(before + 1) # it stays open for the next
  end

  # --- F06

  # The answers to one of everything.
  def everything
    body = Random.new(1).bytes(300_000)
    [get(@server, "/file.txt").body, http(@server, "/echo", method: "POST", body: body).body, get(@server, "/big").body, get(@server, "/stream").body,
     get(@server, "/").body].map { |text| Digest::SHA256.hexdigest(text) }
  end

  def test_interrupted_calls_are_made_again
    write("public/file.txt", "f" * 500_000)
    begin_server("-w", "1")
    expected = everything
    %w[epoll_wait epoll_pwait accept4 recvfrom sendmsg sendfile read write futex pread64 preadv2].then do |calls|
      with_calls(@front, *calls.map { |call| "#{call}:error=EINTR:when=2+3" }) { 5.times { assert_equal expected, everything } }
    end
    with_calls(workers(@server).first, *%w[read write sendmsg recvmsg pread64].map { |call| "#{call}:error=EINTR:when=2+3" }) do
      http(@server, "/echo", method: "POST", body: "x" * 300_000) # one of them at least is made
      5.times { assert_equal expected, everything }
    end
  end

  def test_a_storm_of_signals_loses_nothing
    begin_server("-w", "1")
    targets = [@server.pid, @front, *workers(@server)]
    running = true
    storm = Thread.new { targets.each { |pid| Process.kill("CHLD", pid) } && Process.kill("ALRM", @front) && Thread.pass while running }
    with_witness(@server) { 100.times { assert_equal "ok", get(@server, "/").body } }
    running = false
    storm.join
    spent = targets.sum { |pid| used(pid) }
    refute IO.select([IO.pipe.first], nil, nil, 0.5)
    assert_operator targets.sum { |pid| used(pid) } - spent, :<, 0.2, "nobody is busy afterwards"
    assert_equal targets, [@server.pid, *processes(@server, "front"), *workers(@server)]
  end

  # --- F07

  def test_answers_are_the_same_whatever_a_call_moves
    write("public/file.txt", "f" * 500_000)
    begin_server("-w", "1")
    expected = everything
    with_calls(@front, *%w[sendmsg sendfile recvfrom].map { |call| "#{call}:error=EAGAIN:when=2+3" }) { 5.times { assert_equal expected, everything } }
    %w[/file.txt /big /stream].each_with_index do |path, index|
      socket = Socket.new(:INET, :STREAM)
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_RCVBUF, 1)
      socket.connect(Addrinfo.tcp("127.0.0.1", @server.port))
      "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n".each_char { |byte| socket.write(byte) }
      assert_equal expected[[0, 2, 3][index]], Digest::SHA256.hexdigest(read_reply(socket).body), path
      socket.close
    end
  end

  # --- F08

  SMALL = ["-t", "tmpfs", "-o", "size=1m", "tmpfs"].freeze

  def self.mounts? = root? && Dir.mktmpdir { |folder| system("mount", *SMALL, folder, err: File::NULL) && system("umount", folder) }

  # A file system of one megabyte.
  def small_spool
    folder = File.join(@dir, "small")
    FileUtils.mkdir(folder, mode: 0o777)
    assert system("mount", *SMALL, folder)
    @mounted = folder
  end

  def teardown
    super
  ensure
    system("umount", "-l", @mounted) if @mounted
  end

  where mounts?, "the right to mount" do
    def test_a_full_spool_refuses_uploads_in_order_and_never_cuts_an_answer
      begin_server("-w", "1", more: "spool: #{folder = small_spool}\n")
      before = descriptors(@front)
      with_witness(@server) do
        10.times do
          connect(@server) do |socket|
            writer = Thread.new { socket.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n", "x" * 3_000_000) rescue nil }
            reply = read_reply(socket)
            assert_includes [503, 507], reply.status
            assert reply.complete
            writer.join
          end
        end
        readers = Array.new(4) { TCPSocket.new("127.0.0.1", @server.port).tap { |socket| socket.write("GET /big HTTP/1.1\r\nHost: a\r\n\r\n") } }
        readers.each { |socket| assert_equal 2_000_000, read_reply(socket).body.bytesize }
        readers.each(&:close)
      end
      assert_equal 500_000, http(@server, "/echo", method: "POST", body: "x" * 500_000).body.bytesize
      assert_served_as_before(before)
      eventually(5, "the space is free again") { `df --output=used #{folder}`[/\d+/] == "0" }
    end
  end

  def test_a_limit_of_file_sizes_is_a_full_spool
    begin_server("-w", "1")
    before = descriptors(@front)
    assert system("prlimit", "--pid", @front.to_s, "--fsize=100000:100000")
    assert_equal 503, try("/echo", method: "POST", body: "x" * 200_000)
    assert_equal 200, try("/echo", method: "POST", body: "x" * 90_000)
    assert_served_as_before(before)
  end

  # --- F09

  def dropped = Net::HTTP.get("127.0.0.1", "/metrics", @admin)[/^leat_log_lines_dropped_total (\d+)/, 1].to_i

  def test_lines_for_a_full_disk_are_dropped_and_counted
    begin_server("-w", "1", "--admin", "127.0.0.1:#{@admin = free_port}", more: "access_log: {file: /dev/full}\n")
    with_witness(@server) { 200.times { assert_equal "ok", get(@server, "/").body } }
    eventually(5, "they are counted") { dropped >= 200 }
  end

  def test_lines_for_a_full_pipe_are_dropped_and_counted_and_come_again
    File.mkfifo(path = File.join(@dir, "pipe"))
    reader = File.open(path, File::RDONLY | File::NONBLOCK)
    begin_server("-w", "1", "--admin", "127.0.0.1:#{@admin = free_port}", more: "access_log: {file: pipe}\nlog: pipe\n")
    agent = "a" * 1000
    with_witness(@server) { 300.times { assert_equal "200", get(@server, "/", "User-Agent" => agent).code } }
    eventually(5, "they are counted") { dropped.positive? }
    lines = +""
    eventually(10, "new lines come") do
      get(@server, "/afterwards")
      lines << reader.readpartial(1 << 20) if reader.wait_readable(0)
      lines.include?("GET /afterwards ")
    end
    assert_empty lines.lines.grep_v(/\A(127\.0\.0\.1 - - .*"|\d{4}-.*)\n\z/), "every line is whole"
    reader.close
    assert_equal "ok", get(@server, "/").body, "also without a reader"
  end
end
