# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# One running server with all its processes: start and wait until it answers, count what it used, stop.

require "socket"
require_relative "machine"

class Peer
  TICKS = Etc.sysconf(Etc::SC_CLK_TCK).to_f
  OURS = %w[wrk ab strace cc].freeze # programs of the bench that are children as well

  attr_reader :name, :port, :folder, :app, :threads

  @next_port = Integer(ENV.fetch("BENCH_PORT", "20920"))
  class << self
    attr_accessor :next_port
  end

  # app: :mix, :rails or :static. commands: what starts it, each given the peer.
  def initialize(name, commands, app, threads)
    @name, @commands, @app, @threads = name, Array(commands), app, threads
    @port = Peer.next_port
    Peer.next_port += 4
    @folder = Dir.mktmpdir("#{name}-", Machine::SCRATCH)
    File.chmod(0o777, @folder)
  end

  def self.run(...)
    peer = new(...)
    begin
      peer.start
      yield peer
    ensure
      peer.stop
    end
  end

  def directory
    { mix: File.join(Machine::BENCH, "apps"), rails: File.join(Machine::ROOT, "examples/rails"), static: Machine::SITE }.fetch(@app)
  end

  def rackup = { mix: "mix.ru", rails: "config.ru" }[@app]
  def probe = { mix: "/pulse", rails: "/api/pulse", static: "/1k.txt" }.fetch(@app)

  def write(name, text)
    File.join(@folder, name).tap { |file| File.write(file, text) }
  end

  def environment
    common = { "RACK_ENV" => "production", "RAILS_ENV" => "production", "PORT" => @port.to_s, "RUBYOPT" => nil, "RUBYLIB" => nil,
               "RAILS_MAX_THREADS" => @threads.to_s, "RAILS_LOG_LEVEL" => "fatal", "SECRET_KEY_BASE" => "0" * 128,
               "DATABASE_FILE" => File.join(@folder, "bench.sqlite3") }
    @app == :rails ? common.merge("BUNDLE_GEMFILE" => File.join(Machine::BENCH, "apps/rails.gemfile")) : common
  end

  def start(limit_s = 60)
    @pids = @commands.map.with_index do |command, index|
      log = File.join(@folder, "out#{index}.log")
      Process.spawn(environment, "exec #{command.call(self)}", out: [log, "w"], err: %i[child out], in: "/dev/null", chdir: directory, pgroup: true)
    end
    deadline = now + limit_s
    until answers?
      raise "#{@name} does not answer\n#{log}" if now > deadline || ended?
      sleep 0.02
    end
  end

  def answers?
    get(probe).start_with?("HTTP/1.1 200")
  rescue SystemCallError, EOFError
    false
  end

  # The head of the answer on a new connection.
  def get(path)
    Socket.tcp("127.0.0.1", @port, connect_timeout: 2) do |socket|
      socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
      head = +""
      head << socket.readpartial(65_536) until head.include?("\r\n\r\n")
      return head[/\A.*?\r\n\r\n/m]
    end
  end

  def log
    Dir[File.join(@folder, "*.log")].map { |file| File.read(file, encoding: "BINARY").scrub("?")[-2000..] || File.read(file) }.join
  end

  # All processes, also those that were re-parented to us.
  def processes
    children = Hash.new { |hash, key| hash[key] = [] }
    Dir.children("/proc").grep(/\A\d+\z/).each do |pid|
      fields = stat(pid) and fields[0] != "Z" and children[fields[1].to_i] << pid.to_i
    end
    found = []
    queue = children[Process.pid].reject { |pid| OURS.include?(comm(pid)) }
    while (pid = queue.shift)
      found << pid
      queue.concat(children[pid])
    end
    found
  end

  def cpu_s
    processes.sum { |pid| (fields = stat(pid)) ? (fields[11].to_i + fields[12].to_i) / TICKS : 0.0 }
  end

  # {pid => {"title", "pss_kb", "private_kb"}}
  def memory
    processes.to_h do |pid|
      text = begin
        File.read("/proc/#{pid}/smaps_rollup")
      rescue SystemCallError
        ""
      end
      kb = ->(key) { text[/^#{key}:\s+(\d+)/, 1].to_i }
      [pid, { "title" => title(pid), "pss_kb" => kb["Pss"], "private_kb" => kb["Private_Clean"] + kb["Private_Dirty"] }]
    end
  end

  def title(pid)
    File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip[0, 40]
  rescue SystemCallError
    "?"
  end

  def stop
    @pids&.each { |pid| signal(:TERM, pid) }
    wait_for_end(6)
    processes.each { |pid| signal(:KILL, pid) }
    wait_for_end(3)
    FileUtils.rm_rf(@folder)
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # The fields of /proc/PID/stat from the state on, or nil when it is gone.
  def stat(pid)
    text = File.read("/proc/#{pid}/stat")
    text[text.rindex(")") + 2..].split
  rescue SystemCallError
    nil
  end

  def comm(pid)
    File.read("/proc/#{pid}/comm").strip
  rescue SystemCallError
    ""
  end

  def ended? = @pids.any? { |pid| Process.wait(pid, Process::WNOHANG) }

  def signal(name, pid)
    Process.kill(name, pid)
  rescue Errno::ESRCH
    nil
  end

  def wait_for_end(seconds)
    deadline = now + seconds
    loop do
      reap
      break if processes.empty? || now > deadline
      sleep 0.02
    end
  end

  def reap
    nil while Process.wait(-1, Process::WNOHANG)
  rescue Errno::ECHILD
    nil
  end
end
