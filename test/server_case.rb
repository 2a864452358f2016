# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# The base of the system tests: each test states its configuration and application inline, starts a real
# server on free ports, waits for events (never for a time), and stops what it started, also when it fails.
require "minitest/autorun"
require "fileutils"
require "json"
require "net/http"
require "open3"
require "rbconfig"
require "socket"
require "timeout"
require "tmpdir"

class ServerCase < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  BINARY = File.expand_path(ENV["LEAT_BINARY"] || "build/leat", ROOT)
  START_SECONDS = ENV["LEAT_SLOW"] ? 120 : 40

  # One answer as it came over the wire.
  Reply = Struct.new(:status, :headers, :body, :raw, :complete) do
    # The values of every line with that name, in order.
    def lines(name) = raw.scan(/^#{name}: *([^\r]*)\r$/i).flatten
  end

  # A started server: its process, output and folder.
  class Server
    attr_reader :pid, :dir, :port, :out

    def initialize(pid, dir, port, out)
      @pid, @dir, @port, @out = pid, dir, port, out
    end

    def output = File.read(@out)
  end

  # A client that asks all the time: what it lost, and its longest time from a request to its answer.
  class Witness
    PAUSE_SECONDS = 0.02

    attr_reader :answers, :lost, :longest

    def initialize(port, path)
      @port, @path = port, path
      @answers, @lost, @longest = 0, [], 0
      @end, @ended = IO.pipe
      @thread = Thread.new { ask until @end.wait_readable(PAUSE_SECONDS) }
    end

    def stop
      return if @ended.closed?

      @ended.close
      @thread.join
      ask
    end

    private

    def ask
      begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      code = Net::HTTP.get_response("127.0.0.1", @path, @port).code
      code == "200" ? @answers += 1 : @lost << code
    rescue SystemCallError, IOError, Timeout::Error => error
      @lost << error.class.name
    ensure
      @longest = [@longest, Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun].max
    end
  end

  # Defines the tests of the block where the machine can do what they need; elsewhere one line says what
  # is left out.
  def self.where(is_possible, needs)
    is_possible ? yield : warn("#{self}: tests that need #{needs} are left out")
  end

  def self.root? = Process.uid.zero?

  def setup
    @dir = Dir.mktmpdir("leat-test")
    @servers = []
    @children = []
  end

  def teardown
    @servers.each { |server| end_process(server.pid) }
    @children.each { |pid| end_process(pid) }
    show_output unless passed?
  ensure
    FileUtils.rm_rf(@dir)
  end

  # --- the world of a test

  # Writes a file below the test's folder and returns its path.
  def write(path, text)
    full = File.join(@dir, path)
    FileUtils.mkdir_p(File.dirname(full))
    File.binwrite(full, text)
    full
  end

  # A config.ru whose application is the block's text.
  def app(text, path: "config.ru") = write(path, text)

  # leat.yml as given.
  def config(text) = write("leat.yml", text)

  # The program under test.
  def binary = BINARY

  # What a sanitizer may take more of memory.
  def memory_factor = BINARY.match?(%r{/[at]san/}) ? 5 : 1

  # Starts the server in the foreground in the test's folder and waits until it is ready.
  def start(*options, env: {}, dir: @dir, wait: true)
    port = free_port
    out = File.join(@dir, "output.#{@servers.size}")
    argv = options.include?(:no_port) ? options - [:no_port] : ["-p", port.to_s, *options]
    pid = Process.spawn(clean_env.merge(env), binary, "start", *argv.map(&:to_s),
                        chdir: dir, out: out, err: [:child, :out], in: "/dev/null")
    server = Server.new(pid, dir, port, out)
    @servers << server
    wait_ready(server) if wait
    server
  end

  # Runs a verb to its end and returns [output of both, exit status].
  def leat(*arguments, env: {}, dir: @dir, seconds: START_SECONDS)
    out = nil
    status = nil
    Timeout.timeout(seconds) do
      out, status = Open3.capture2e(clean_env.merge(env), binary, *arguments.map(&:to_s), chdir: dir, stdin_data: "")
    end
    [out, status.exitstatus]
  end

  # Starts another program whose end the test guarantees.
  def spawn_child(*command, **options)
    pid = Process.spawn(*command, **options)
    @children << pid
    pid
  end

  # A signal to the server's master, and its exit status.
  def stop(server, signal = "TERM", seconds: 30)
    Process.kill(signal, server.pid)
    wait_exit(server.pid, seconds)
  end

  def wait_exit(pid, seconds = 30)
    status = nil
    eventually(seconds, "process #{pid} ends") do
      _, status = Process.wait2(pid, Process::WNOHANG)
      status
    end
    @servers.reject! { |server| server.pid == pid }
    @children.delete(pid)
    status.exitstatus || "signal #{status.termsig}"
  end

  # By the socket of that very process: several servers may run in one folder.
  def status(server)
    control = ["/run/leat", File.join(@dir, "run/leat")].map { |run| File.join(run, "#{server.pid}.sock") }.find { |path| File.socket?(path) }
    out, code = leat("status", "--json", *(["--control", control] if control), dir: server.dir)
    code.zero? ? JSON.parse(out) : flunk("status: #{out}")
  end

  # The first pool of the status.
  def pool(server) = status(server)["pools"].first

  # --- clients

  # A request by Net::HTTP; block configures it.
  def http(server, path, method: "GET", headers: {}, body: nil)
    Net::HTTP.start("127.0.0.1", server.port, read_timeout: 30) do |client|
      request = Net::HTTPGenericRequest.new(method, !body.nil?, method != "HEAD", path, headers)
      request.body = body if body
      client.request(request)
    end
  end

  def get(server, path, headers = {}) = http(server, path, headers: headers)

  # Sends raw bytes on a connection of its own and reads to its end or until count answers are there.
  def raw(server, bytes, count: 1, methods: [])
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write(bytes)
    count.times.map { |index| read_reply(socket, method: methods[index] || "GET") }
  ensure
    socket&.close
  end

  # A connection that is closed after the block; returns the block's value. Small writes go out at once.
  def connect(server)
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    yield socket
  ensure
    socket&.close
  end

  # Leaves with a reset instead of a FIN, which is no half-close.
  def reset(socket)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    socket.close
  end

  # The block runs while another client asks all the time; it must lose nothing, and never wait longer
  # than the seconds for the next answer.
  def with_witness(server, path = "/", longest: 2.0)
    witness = Witness.new(server.port, path)
    result = yield
    witness.stop
    assert_empty witness.lost, "the witness lost requests"
    assert_operator witness.longest, :<, longest, "the longest gap of the witness"
    result
  ensure
    witness&.stop
  end

  # Reads one response from a socket by its framing.
  def read_reply(socket, method: "GET", seconds: 20)
    Timeout.timeout(seconds) do
      head = +"".b
      head << (socket.readpartial(1) || break) until head.end_with?("\r\n\r\n")
      lines = head.split("\r\n")
      status = lines.first[/\AHTTP\/1\.[01] (\d{3})/, 1].to_i
      headers = lines.drop(1).to_h { |line| line.split(/:\s*/, 2).then { |name, value| [name.downcase, value] } }
      body, complete = read_body(socket, status, headers, method)
      Reply.new(status, headers, body, head, complete)
    end
  end

  def read_body(socket, status, headers, method)
    return ["", true] if method == "HEAD" || status < 200 || [204, 304].include?(status)
    return read_chunks(socket) if headers["transfer-encoding"] == "chunked"
    return [socket.read, true] unless headers["content-length"]

    length = headers["content-length"].to_i
    body = length.zero? ? "" : socket.read(length).to_s
    [body, body.bytesize == length]
  end

  def read_chunks(socket)
    body = +"".b
    loop do
      line = socket.gets or return [body, false]
      size = Integer(line[/\A\h+/], 16)
      if size.zero?
        nil until socket.gets.to_s.chomp.empty?
        return [body, true]
      end
      part = socket.read(size).to_s
      body << part
      return [body, false] if part.bytesize < size

      socket.read(2)
    end
  end

  # --- waiting

  # Asks until the block is true; the only place where a test passes time.
  def eventually(seconds = 10, what = "it happens")
    limit = now + seconds
    loop do
      result = yield
      return result if result
      flunk("#{what}: not within #{seconds} s") if now > limit
      sleep 0.02
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # A port below those that the system gives to connecting clients, free on every address.
  def free_port
    100.times do
      port = rand(10_000..32_000)
      return port if ["0.0.0.0", "::"].all? { |host| bindable?(host, port) }
    end
    flunk("no free port")
  end

  def bindable?(host, port)
    Addrinfo.tcp(host, port).bind { true }
  rescue Errno::EADDRINUSE
    false
  rescue Errno::EAFNOSUPPORT, Errno::EADDRNOTAVAIL
    true
  end

  # Processes whose parent is pid, as [pid, title] pairs.
  def children_of(pid)
    Dir.glob("/proc/[0-9]*/stat").filter_map do |file|
      stat = File.read(file)
      number = stat[/\A\d+/].to_i
      parent, state = stat[/\) (\S) (\d+)/, 2].to_i, stat[/\) (\S)/, 1]
      [number, File.read("/proc/#{number}/cmdline").tr("\0", " ").strip] if parent == pid && state != "Z"
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end
  end

  def processes(server, role) = children_of(server.pid).select { |_, title| title.start_with?("leat: #{role}") }.map(&:first)

  def workers(server) = processes(server, "worker")

  def gone?(pid)
    File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] == "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    true
  end

  private

  def wait_ready(server)
    eventually(START_SECONDS, "server is ready") do
      flunk("server ended:\n#{server.output}") unless Process.wait2(server.pid, Process::WNOHANG).nil?
      server.output.include?("ready")
    end
  end

  def clean_env
    { "RAILS_ENV" => nil, "RACK_ENV" => nil, "APP_ENV" => nil, "PORT" => nil, "BINDING" => nil, "WEB_CONCURRENCY" => nil,
      "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "XDG_RUNTIME_DIR" => File.join(@dir, "run") }
  end

  def end_process(pid)
    Process.kill("KILL", pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  end

  def show_output
    @servers.each { |server| warn "--- output of #{server.pid}:\n#{server.output[-4000..] || server.output}" if File.exist?(server.out) }
  end
end
