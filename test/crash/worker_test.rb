# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# kill -9 of a worker at each stage of its life. The application says where it is by a file with its PID and
# then waits in a pipe that nobody opens; so each kill happens exactly there.
class WorkerCrashTest < ServerCase
  APP = <<~'RUBY'
    # Waits for ever, but only the first time.
    STOP_AT = lambda do |stage|
      next if File.exist?("at." + stage)

      File.write("at.tmp", Process.pid.to_s)
      File.rename("at.tmp", "at." + stage)
      File.open("gate", "r").close
    end

    Parts = Struct.new(:stage) do
      def each
        STOP_AT.call("first") if stage == "first"
        yield "a" * 1000
        STOP_AT.call("half") if stage == "half"
        yield "b"
      end

      def close = (STOP_AT.call("close") if stage == "close")
    end

    run(lambda do |env|
      stage = env["PATH_INFO"].delete_prefix("/")
      text = {"content-type" => "text/plain"}
      File.write("runs", "#{env["REQUEST_METHOD"]} #{stage}\n", mode: "a") unless stage.empty?
      case stage
      when "call" then STOP_AT.call("call")
      when "body"
        env["rack.input"].read(1000)
        STOP_AT.call("body")
        env["rack.input"].read
      when "replied" then env["rack.after_reply"] << proc { STOP_AT.call("replied") }
      when "first", "half", "close" then next [200, text, Parts.new(stage)]
      end
      [200, text, [stage.empty? ? Process.pid.to_s : "done #{stage}"]]
    end)
  RUBY

  def setup
    super
    app APP
    File.mkfifo(File.join(@dir, "gate"))
  end

  def launch
    start("-e", "production", "-w", "2", "-t", "2").tap do |server|
      eventually(5, "both are ready") { pool(server)["workers"].map { |worker| worker["state"] } == %w[idle idle] }
      @before = descriptors(server)
    end
  end

  # Open files of master and front: what a death leaves there would stay for ever.
  def descriptors(server) = [server.pid, *processes(server, "front")].sum { |pid| Dir.children("/proc/#{pid}/fd").size }

  # The worker that says it has come to a stage.
  def worker_at(stage)
    path = File.join(@dir, "at.#{stage}")
    eventually(10, "a worker is at #{stage}") { File.exist?(path) }
    File.read(path).to_i
  end

  def kill(pid) = Process.kill("KILL", pid)

  def runs(stage) = File.readlines(File.join(@dir, "runs"), chomp: true).grep(/ #{stage}\z/)

  # Two workers again, neither of them the dead one, and nothing that belonged to it is left.
  def assert_healed(server, dead, kills: 1)
    eventually(3, "two workers again") { workers(server).size == 2 && !workers(server).include?(dead) }
    eventually(5, "nothing is held") do
      seen = pool(server)
      seen["slots"]["busy"].zero? && seen["queue"]["length"].zero? && seen["workers"].size == 2 && seen["exits"]["killed"] == kills
    end
    eventually(5, "no descriptor stays") { descriptors(server) <= @before }
    10.times { assert_equal "200", get(server, "/").code }
  end

  def client(server, path, **options) = Thread.new { http(server, path, **options).then { |reply| [reply.code, reply.body, now] } }

  def test_idle
    server = launch
    pid = workers(server).first
    with_witness(server) do
      kill(pid)
      assert_healed(server, pid)
    end
  end

  def test_in_call_a_get_is_run_again
    server = launch
    with_witness(server) do
      asked = client(server, "/call")
      kill(pid = worker_at("call"))
      assert_equal ["200", "done call"], asked.value.first(2)
      assert_equal ["GET call"] * 2, runs("call")
      assert_healed(server, pid)
    end
  end

  def test_in_call_a_post_gets_502_at_once_and_is_not_run_again
    server = launch
    with_witness(server) do
      asked = client(server, "/call", method: "POST", body: "x")
      pid = worker_at("call")
      begun = now
      kill(pid)
      assert_equal "502", asked.value.first
      assert_operator asked.value.last - begun, :<, 0.5
      assert_equal ["POST call"], runs("call")
      assert_healed(server, pid)
    end
  end

  def test_while_it_reads_a_large_body
    server = launch
    with_witness(server) do
      asked = client(server, "/body", method: "POST", body: "x" * 8_000_000)
      kill(pid = worker_at("body"))
      assert_equal "502", asked.value.first
      assert_healed(server, pid)
    end
    assert_equal "done body", http(server, "/body", method: "POST", body: "x" * 8_000_000).body
  end

  def test_before_the_first_byte_of_the_answer
    server = launch
    with_witness(server) do
      asked = client(server, "/first")
      kill(pid = worker_at("first"))
      assert_equal ["200", 1001], asked.value.first(2).then { |code, body| [code, body.bytesize] }
      assert_healed(server, pid)
    end
  end

  def test_half_way_in_an_answer_the_client_sees_the_cut
    server = launch
    with_witness(server) do
      connect(server) do |socket|
        socket.write("GET /half HTTP/1.1\r\nHost: a\r\n\r\n")
        pid = worker_at("half")
        assert socket.wait_readable(5)
        kill(pid)
        reply = read_reply(socket)
        assert_equal [200, "a" * 1000, false], [reply.status, reply.body, reply.complete]
        assert_healed(server, pid)
      end
    end
    assert_equal ["GET half"], runs("half")
  end

  def test_in_the_close_of_a_body
    server = launch
    with_witness(server) do
      asked = Thread.new { raw(server, "GET /close HTTP/1.1\r\nHost: a\r\n\r\n").first }
      kill(pid = worker_at("close"))
      assert_equal "a" * 1000 + "b", asked.value.body
      refute asked.value.complete, "the answer had no end yet"
      assert_healed(server, pid)
    end
  end

  def test_after_the_answer_nothing_is_lost
    server = launch
    with_witness(server) do
      assert_equal "done replied", http(server, "/replied", method: "POST", body: "x").body
      kill(pid = worker_at("replied"))
      assert_healed(server, pid)
    end
    assert_equal ["POST replied"], runs("replied")
  end

  def test_while_it_retires
    server = launch
    with_witness(server) do
      asked = client(server, "/call")
      pid = worker_at("call")
      restart = Thread.new { Process.kill("USR1", server.pid) }
      eventually(10, "it retires") { pool(server)["workers"].any? { |worker| worker["pid"] == pid && worker["state"] == "retiring" } }
      kill(pid)
      assert_equal ["200", "done call"], asked.value.first(2)
      restart.join
      eventually(10, "the restart is through") { pool(server)["state"] == "up" && workers(server).size == 2 }
      assert_empty workers(server) & [pid]
    end
  end

  def test_while_it_boots
    app <<~'RUBY'
      unless File.exist?("open")
        File.write("boots", "#{Process.pid}\n", mode: "a")
        File.open("gate", "r").close
      end
      run(proc { |env| [200, {}, [Process.pid.to_s]] })
    RUBY
    write "open", ""
    config "preload: false\n"
    server = launch
    FileUtils.rm(File.join(@dir, "open"))
    with_witness(server) do
      kill(workers(server).first)
      boots = -> { File.exist?(path = File.join(@dir, "boots")) ? File.readlines(path).map(&:to_i) : [] }
      (1..2).each do |count|
        eventually(5, "boot #{count}") { boots.call.size == count }
        write "open", "" if count == 2
        kill(boots.call.last)
      end
      eventually(10, "two workers serve") { Array.new(10) { get(server, "/").body }.uniq.size == 2 }
    end
    eventually(5, "nobody is left over") { workers(server).size == 2 }
  end

  # Not more than a dozen: workers that die young again and again are put back ever later.
  def test_many_deaths_leave_nothing
    server = launch
    with_witness(server) do
      10.times do
        pid = workers(server).sample
        kill(pid)
        eventually(5, "it is replaced") { workers(server).size == 2 && !workers(server).include?(pid) }
      end
      assert_healed(server, 0, kills: 10)
    end
  end
end
