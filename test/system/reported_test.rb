# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Troubles that users of other servers reported, which no other file of tests has.
class ReportedTest < ServerCase
  PID = 'run(proc { |env| sleep(env["QUERY_STRING"].to_f); [200, {"content-type" => "text/plain"}, [Process.pid.to_s]] })'

  def setup
    super
    app PID
  end

  # --- a limit hits the wrong worker

  def test_workers_that_load_long_or_have_nothing_to_do_are_never_late
    app "sleep 1\n#{PID}"
    config "workers: 3\nthreads: 1\npreload: false\ntimeout: 400ms\npid: leat.pid\n"
    server = start("-e", "production")
    eventually(20) { pool(server)["slots"]["total"] == 3 }
    with_witness(server) { assert_equal 0, leat("restart", "-P", "leat.pid").last }
    eventually(20, "old ones have left") { pool(server)["workers"].map { |worker| [worker["generation"], worker["state"]] } == [[2, "idle"]] * 3 }
    assert_equal 0, pool(server)["exits"]["timeout"]
    before = workers(server).sort
    assert_equal "504", get(server, "/?20").code
    eventually(10, "one is replaced") { workers(server).size == 3 && workers(server).sort != before }
    assert_equal [2, 1], [(before & workers(server)).size, pool(server)["exits"]["timeout"]]
  end

  # --- connections shared over fork

  def test_a_connection_opened_at_load_is_each_workers_own
    echo = TCPServer.new("127.0.0.1", 0)
    server_thread = Thread.new do
      loop { Thread.new(echo.accept) { |socket| while (line = socket.gets) do socket.write(line) end } }
    end
    app <<~RUBY
      require "socket"
      S = TCPSocket.new("127.0.0.1", #{echo.addr[1]})
      LOCK = Mutex.new
      run(proc { |env| [200, {"content-type" => "text/plain"}, [LOCK.synchronize { S.puts(Process.pid); S.gets.to_i == Process.pid ? "mine" : "another's" }]] })
    RUBY
    server = start("-e", "production", "-w", "4", "-t", "2")
    eventually(20) { pool(server)["slots"]["total"] == 8 }
    bodies = Array.new(10) { Thread.new { Array.new(20) { get(server, "/").body } } }.flat_map(&:value)
    assert_equal({ "mine" => 200 }, bodies.tally)
    assert_match(/config\.ru:2\): workers load by themselves/, server.output)
  ensure
    server_thread&.kill
    echo&.close
  end

  # --- dead workers that stay dead

  def test_workers_killed_again_and_again_are_put_back_though_descriptors_are_few
    former = Process.getrlimit(:NOFILE)
    server = begin
      Process.setrlimit(:NOFILE, 96, former.last) # the soft limit of all that is started
      start("-e", "production", "-w", "6", "-t", "1")
    ensure
      Process.setrlimit(:NOFILE, *former)
    end
    assert system("prlimit", "--pid", server.pid.to_s, "--nofile=96:96")
    eventually(20) { workers(server).size == 6 }
    files = -> { Dir.children("/proc/#{server.pid}/fd").size }
    before = files.call
    30.times do |round|
      eventually(40, "six in round #{round}") { workers(server).size == 6 && workers(server).none? { |pid| gone?(pid) } }
      Process.kill("KILL", workers(server).sample)
      assert_equal "200", get(server, "/").code
    end
    workers(server).each { |pid| Process.kill("KILL", pid) }
    assert_equal "200", get(server, "/").code
    eventually(40) { workers(server).size == 6 }
    eventually(5, "no descriptor stays") { files.call <= before }
  end

  # --- exit statuses

  where root? && system("unshare", "--pid", "--fork", "--mount-proc", "true", err: File::NULL), "PID name spaces" do
    def test_as_the_first_process_of_a_container_it_reaps_all_and_ends_with_0
      app "#{PID}\nfork { fork { sleep 0.2 }; exit! }"
      %w[TERM INT QUIT].each do |signal|
        out = File.join(@dir, "output.#{signal}")
        port = free_port
        around = spawn_child(clean_env, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", binary, "start", "-e", "production", "-w", "1", "-p", port.to_s,
                             chdir: @dir, out: out, err: [:child, :out], in: "/dev/null")
        eventually(30, "ready") { File.read(out).include?("ready: PID 1,") }
        first = children_of(around).first.first
        assert_equal "200", Net::HTTP.get_response("127.0.0.1", "/", port).code
        eventually(5, "no zombie stays") { zombies(first).empty? }
        Process.kill(signal, first)
        assert_equal 0, wait_exit(around), signal
      end
    end

    def zombies(parent)
      Dir.glob("/proc/[0-9]*/stat").select { |file| (File.read(file) rescue "")[/\) Z #{parent} /] }
    end
  end

  # --- stops with a worker that cannot hear

  def test_a_stop_ends_stopped_and_stuck_workers_and_leaves_nothing
    app <<~'RUBY'
      require "fiddle"
      STUCK = Fiddle::Function.new(Fiddle::Handle::DEFAULT["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
      run(proc { |env| STUCK.call(60) if env["PATH_INFO"] == "/stuck"; [200, {}, ["ok"]] })
    RUBY
    config "timeouts: {drain: 500ms, stream_drain: 100ms}\ntimeout: off\npid: leat.pid\nlisten: ['unix:leat.sock']\n"
    server = start("-e", "production", "-w", "2", "-t", "1")
    all = [server.pid, *children_of(server.pid).map(&:first)]
    asked = Thread.new { get(server, "/stuck").code rescue "cut" }
    eventually { pool(server)["slots"]["busy"] == 1 }
    Process.kill("STOP", pool(server)["workers"].find { |worker| worker["busy"].zero? }["pid"])
    begun = now
    assert_equal 4, stop(server)
    assert_operator now - begun, :<, 10
    refute_equal "200", asked.value
    eventually(3, "all are gone") { all.all? { |pid| gone?(pid) } }
    assert_empty Dir.glob(File.join(@dir, "leat.{pid,sock}"))
  end

  # --- no memory for the queue

  where !BINARY.match?(%r{/[at]san/}), "a program without a sanitizer, which reserves more than there is" do
    def test_a_queue_that_finds_no_memory_fails_the_start_in_words
      config "queue: {length: 100000}\nworkers: 1\n"
      out, status = Open3.capture2e(clean_env, "prlimit", "--as=1000000000", binary, "start", "-e", "production", "-p", free_port.to_s, chdir: @dir, stdin_data: "")
      assert_equal 1, status.exitstatus, out
      assert_match(/cannot make its board \(\d+ workers of 3 threads, 100003 places\): Cannot allocate memory/, out)
    end
  end

  # --- relative paths

  def test_paths_of_the_file_lead_to_the_same_place_from_everywhere
    app PID, path: "site/config.ru"
    write "site/leat.yml", "app: .\npid: tmp/pids/leat.pid\nlog: log/leat.log\nenvironment: production\nworkers: 1\n"
    [[File.join(@dir, "site"), []], [@dir, ["-C", "site/leat.yml"]]].each do |folder, options|
      out, code = leat("start", "-d", "-p", free_port, *options, dir: folder)
      assert_equal 0, code, out
      pid = File.read(File.join(@dir, "site/tmp/pids/leat.pid")).to_i
      @servers << Server.new(pid, @dir, 0, File.join(@dir, "site/log/leat.log"))
      assert_match(/master #{pid} /, File.read(File.join(@dir, "site/log/leat.log")))
      out, code = leat("stop", *options, dir: folder)
      assert_equal 0, code, out
      assert gone?(pid)
    end
  end

  # --- files of a server that is gone

  def test_what_a_killed_server_left_does_not_stop_the_next_one
    config "listen: ['unix:run/web.sock']\npid: run/leat.pid\ncontrol: run/leat.sock\nworkers: 1\nenvironment: production\nspool: spool\n"
    FileUtils.mkdir_p(File.join(@dir, "spool"))
    3.times do
      server = start(:no_port)
      sockets = Array.new(2) { UNIXSocket.new(File.join(@dir, "run/web.sock")) }
      sockets.each { |socket| socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n#{"x" * 500_000}") }
      Process.kill("KILL", server.pid)
      Process.wait(server.pid)
      @servers.delete(server)
      sockets.each(&:close)
    end
    foreign = spawn_child("sleep", "60")
    File.write(File.join(@dir, "run/leat.pid"), "#{foreign}\n")
    server = start(:no_port)
    assert_empty Dir.children(File.join(@dir, "spool"))
    refute gone?(foreign)
    UNIXSocket.open(File.join(@dir, "run/web.sock")) do |socket|
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal 200, read_reply(socket).status
    end
    assert_equal 0, stop(server)
    assert_empty Dir.children(File.join(@dir, "run"))
  end
end
