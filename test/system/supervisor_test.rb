# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Starting, stopping and healing as the supervisor decides it: signals, restarts, applications that do not
# load, service managers, users without rights.
class SupervisorTest < ServerCase
  PID = 'run(proc { |env| sleep(env["QUERY_STRING"].to_f) unless env["QUERY_STRING"].empty?; [200, {"content-type" => "text/plain"}, [Process.pid.to_s]] })'
  NOBODY = 65_534

  def setup
    super
    app PID
  end

  def everybody(server) = children_of(server.pid).map(&:first)

  # Answers of so many clients that ask at once, as a list when it is read.
  def clients(server, count, path)
    Array.new(count) { Thread.new { get(server, path).code rescue "cut" } }
  end

  def running(server, count)
    eventually { pool(server).then { |pool| pool["slots"]["busy"] + pool["queue"]["length"] == count } }
  end

  # --- stopping

  def test_a_term_for_every_process_at_once_loses_no_request
    server = start("-e", "production", "-w", "2", "-t", "1")
    asked = clients(server, 8, "/?0.4")
    running(server, 8)
    everybody(server).each { |pid| Process.kill("TERM", pid) }
    assert_equal 0, stop(server)
    assert_equal ["200"] * 8, asked.map(&:value)
    refute_match(/loaded again|next try|reason=killed/, server.output)
  end

  def test_a_term_for_every_process_ends_an_idle_development_server_quickly
    app "sleep 0.5\n#{PID}"
    server = start
    everybody(server).each { |pid| Process.kill("TERM", pid) }
    begun = now
    assert_equal 0, stop(server)
    assert_operator now - begun, :<, 3
    refute_match(/ warn pool|error/, server.output)
  end

  def test_a_stop_with_a_hung_worker_ends_at_the_drain_with_4
    app 'run(proc { |env| loop {} if env["PATH_INFO"] == "/hang"; [200, {}, ["ok"]] })'
    config "timeouts: {drain: 400ms, stream_drain: 100ms}\ntimeout: off\n"
    server = start("-e", "production", "-w", "1", "-t", "1")
    asked = clients(server, 1, "/hang")
    running(server, 1)
    begun = now
    assert_equal 4, stop(server)
    assert_operator now - begun, :<, 5
    refute_equal ["200"], asked.map(&:value)
  end

  def test_a_second_term_stops_at_once
    server = start("-e", "production", "-w", "1", "-t", "1")
    asked = clients(server, 1, "/?20")
    running(server, 1)
    Process.kill("TERM", server.pid)
    eventually { server.output.include?("stop: requests under way") }
    begun = now
    assert_equal 4, stop(server)
    assert_operator now - begun, :<, 5
    asked.each(&:value)
  end

  def test_a_term_while_the_application_loads_leaves_nothing_behind
    app "File.write('loading', ''); sleep 30\n#{PID}"
    config "pid: leat.pid\nlisten: ['unix:leat.sock']\n"
    server = start(:no_port, "-e", "production", wait: false)
    eventually(20) { File.exist?(File.join(@dir, "loading")) }
    all = everybody(server)
    assert_equal 0, stop(server)
    eventually(2, "all gone") { all.all? { |pid| gone?(pid) } }
    refute_path_exists File.join(@dir, "leat.pid")
    refute_path_exists File.join(@dir, "leat.sock")
  end

  def test_the_stop_verb_returns_when_the_server_has_ended
    out, code = leat("start", "-d", "-p", free_port, "-P", "leat.pid")
    assert_equal 0, code, out
    pid = Integer(File.read(File.join(@dir, "leat.pid")))
    assert_equal 0, leat("stop", "-P", "leat.pid").last
    assert gone?(pid), "the server is still there"
    assert_empty Dir.glob(File.join(@dir, "run/leat/*"))
  end

  def test_stop_now_does_not_wait
    server = start("-e", "production", "-w", "1", "-t", "1", "-P", "leat.pid")
    asked = clients(server, 1, "/?20")
    running(server, 1)
    begun = now
    out, code = leat("stop", "--now", "-P", "leat.pid")
    assert_equal 0, code, out
    assert_operator now - begun, :<, 5
    assert_equal 4, wait_exit(server.pid)
    asked.each(&:value)
  end

  # --- restarting

  def test_restarts_at_the_same_time_are_joined
    server = start("-e", "production", "-w", "1", "-P", "leat.pid")
    outcomes = Array.new(4) { Thread.new { leat("restart", "-P", "leat.pid") } }.map(&:value)
    outcomes.each { |out, code| assert_equal 0, code, out }
    assert_includes 2..3, pool(server)["workers"].map { |worker| worker["generation"] }.max
  end

  def test_a_restart_during_the_start_is_served_after_it
    app "sleep 0.5\n#{PID}"
    server = start("-e", "production", "-w", "1", "-P", "leat.pid", wait: false)
    eventually(20) { File.exist?(File.join(@dir, "leat.sock")) }
    out, code = leat("restart", "-P", "leat.pid")
    assert_equal 0, code, out
    assert_equal "200", get(server, "/").code
    assert_equal 0, stop(server)
  end

  def test_a_stop_during_a_restart_does_not_wait_for_what_loads
    app "File.write('loading', '') && sleep(30) if File.exist?('now')\n#{PID}"
    server = start("-e", "production", "-w", "1", "-P", "leat.pid")
    write "now", ""
    restart = Thread.new { leat("restart", "-P", "leat.pid") }
    eventually(20) { File.exist?(File.join(@dir, "loading")) }
    begun = now
    assert_equal 0, stop(server)
    assert_operator now - begun, :<, 4
    out, code = restart.value
    assert_equal 1, code
    assert_match(/stopped meanwhile/, out)
  end

  def test_a_touched_restart_txt_restarts_once
    write "VERSION", "1"
    app 'V = File.read("VERSION"); run(proc { |_env| [200, {}, [V]] })'
    server = start("-e", "production", "-w", "1")
    write "VERSION", "2"
    assert_equal "1", get(server, "/").body
    write "tmp/restart.txt", ""
    eventually(10, "the marker is seen") { get(server, "/").body == "2" }
    assert_equal [2], pool(server)["workers"].map { |worker| worker["generation"] }.uniq
  end

  def test_ttin_and_ttou_change_the_number_of_workers
    server = start("-e", "production", "-w", "1")
    Process.kill("TTIN", server.pid)
    eventually(10, "two workers") { workers(server).size == 2 }
    Process.kill("TTOU", server.pid)
    eventually(10, "one worker") { workers(server).size == 1 }
    assert_equal "200", get(server, "/").code
  end

  def test_a_worker_that_gets_term_finishes_and_is_replaced
    server = start("-e", "production", "-w", "1", "-t", "1")
    worker = workers(server).first
    asked = clients(server, 4, "/?0.3")
    running(server, 4)
    Process.kill("TERM", worker)
    assert_equal ["200"] * 4, asked.map(&:value)
    eventually { gone?(worker) && workers(server).size == 1 }
  end

  # --- on demand

  def test_a_pool_on_demand_starts_with_its_first_request
    config "workers: 0..2\n"
    server = start("-e", "production", "-P", "leat.pid")
    assert_equal ["down", 0, []], pool(server).values_at("state", "min", "workers")
    assert_empty processes(server, "mold")
    assert_equal 0, leat("healthcheck", "-P", "leat.pid").last
    out, code = leat("restart", "-P", "leat.pid")
    assert_equal 0, code, out
    assert_equal "200", get(server, "/").code
    assert_equal ["up", 2], pool(server).then { |pool| [pool["state"], pool["workers"].first["generation"]] }
  end

  def test_a_pool_on_demand_that_cannot_be_started_heals
    app "raise 'no database' unless File.exist?('up')\n#{PID}"
    config "workers: 0..1\nqueue: {timeout: 20s}\n"
    server = start("-e", "production")
    asked = Thread.new { get(server, "/").code }
    eventually(10) { pool(server).values_at("state", "error").then { |state, error| state == "crashing" && error.include?("no database") } }
    write "up", ""
    assert_equal "200", asked.value
  end

  # --- applications that do not load

  def test_an_application_that_exits_while_it_loads_fails_the_start
    app "exit 0\n"
    out, code = leat("start", "-d", "-e", "production", "-p", free_port)
    assert_equal 1, code
    assert_match(/exit/i, out)
  end

  def test_an_application_that_hangs_while_it_loads_fails_at_start_timeout
    app "sleep\n"
    config "start_timeout: 1s\n"
    %w[production development].each do |environment|
      out, code = leat("start", "-d", "-e", environment, "-p", free_port)
      assert_equal 1, code, out
      assert_match(/start_timeout|not ready|before it was ready/, out)
    end
  end

  def test_workers_that_cannot_load_are_tried_with_pauses_and_heal
    app "File.open('tries', 'a') { |file| file.puts Process.pid }\nraise 'no database' if File.exist?('down')\n#{PID}"
    config "workers: 2\npreload: false\n"
    server = start("-e", "production")
    eventually { pool(server)["slots"]["total"] == 6 }
    write "down", ""
    write "tries", ""
    workers(server).each { |pid| Process.kill("KILL", pid) }
    eventually(10) { pool(server).values_at("state", "error").then { |state, error| state == "crashing" && error.include?("no database") } }
    eventually(15) { File.readlines(File.join(@dir, "tries")).size >= 3 }
    assert_operator File.readlines(File.join(@dir, "tries")).size, :<=, 6
    asked = clients(server, 1, "/")
    File.delete(File.join(@dir, "down"))
    assert_equal ["200"], asked.map(&:value)
    eventually(10) { pool(server)["state"] == "up" }
    assert_nil pool(server)["error"]
  end

  def test_workers_that_die_soon_after_they_are_ready_are_not_forked_without_end
    app "#{PID}\nafter = Thread.new { sleep 0.05; exit!(1) } if File.exist?('dying')"
    config "workers: 1\npreload: false\n"
    server = start("-e", "production")
    write "dying", ""
    Process.kill("KILL", workers(server).first)
    eventually(30) { pool(server)["exits"]["crash"] >= 8 }
    first = pool(server)["exits"]["crash"]
    begun = now
    eventually(30) { now - begun > 3 }
    assert_operator pool(server)["exits"]["crash"] - first, :<=, 8
    File.delete(File.join(@dir, "dying"))
    eventually(35) { (get(server, "/").code == "200") && pool(server)["state"] == "up" }
  end

  # --- logs

  def test_what_applications_print_follows_a_rotated_log
    app 'run(proc { |env| puts env["PATH_INFO"]; $stdout.flush; warn "e#{env["PATH_INFO"]}"; [200, {}, [Process.pid.to_s]] })'
    config "log: log/leat.log\npid: leat.pid\nworkers: 2\n"
    server = start("-e", "production", wait: false)
    eventually(30) { get(server, "/1").code == "200" rescue false }
    eventually { pool(server)["slots"]["total"] == 6 }
    file = File.join(@dir, "log/leat.log")
    File.rename(file, "#{file}.1")
    before = workers(server).sort
    assert_equal 0, leat("reopen", "-P", "leat.pid").last
    eventually(10, "both workers write to the new file") do
      4.times { get(server, "/2") }
      former = File.size("#{file}.1")
      8.times { get(server, "/3") }
      File.read(file).then { |text| text.include?("\n/3\n") && text.include?("e/3") } && File.size("#{file}.1") == former
    end
    assert_equal before, workers(server).sort
    # A worker that comes later writes there, too.
    workers(server).each { |pid| Process.kill("KILL", pid) }
    former = File.size("#{file}.1")
    get(server, "/later")
    eventually { File.read(file).include?("\n/later\n") }
    assert_equal former, File.size("#{file}.1")
  end

  # --- places

  def test_a_named_pid_file_that_cannot_be_written_fails_before_the_application_loads
    app "File.write('loaded', '')\n#{PID}"
    out, code = leat("start", "-p", free_port, "-P", "/proc/leat.pid")
    assert_equal 1, code
    assert_match(%r{pid: .*/proc/leat\.pid}, out)
    refute_path_exists File.join(@dir, "loaded")
  end

  def test_sockets_of_a_killed_server_are_swept
    server = start
    left = Dir.glob("{#{@dir}/run/leat,/run/leat}/#{server.pid}*")
    refute_empty left
    Process.kill("KILL", server.pid)
    Process.wait(server.pid)
    start
    left.each { |path| refute_path_exists path }
  end

  def test_more_loops_than_fit_are_cut_with_a_line
    config "loops: 64\n"
    server = start("-e", "production", "-w", "1")
    assert_equal "200", get(server, "/").code
    assert_match(/loops: 64 are more than fit/, server.output)
  end

  # --- users without rights

  # The words before a command that run it as nobody, who may read the folder but write nothing.
  AS_NOBODY = ["setpriv", "--reuid=#{NOBODY}", "--regid=#{NOBODY}", "--clear-groups"].freeze

  def self.nobody_runs? = root? && system(*AS_NOBODY, BINARY, "version", out: File::NULL, err: File::NULL)

  where nobody_runs?, "root, and a folder that everybody may enter" do
    def nobody_env = clean_env.merge("HOME" => "/", "XDG_RUNTIME_DIR" => nil, "TMPDIR" => nil)

    def start_as_nobody(*options)
      File.chmod(0o755, @dir)
      port = free_port
      out = File.join(@dir, "output.nobody")
      pid = Process.spawn(nobody_env, *AS_NOBODY, binary, "start", "-p", port.to_s, *options,
                          chdir: @dir, out: out, err: [:child, :out], in: "/dev/null")
      server = Server.new(pid, @dir, port, out)
      @servers << server
      wait_ready(server)
      server
    end

    def leat_as_nobody(*arguments)
      out, status = Open3.capture2e(nobody_env, *AS_NOBODY, binary, *arguments, chdir: @dir, stdin_data: "")
      [out, status.exitstatus]
    end

    # The soft limit of nobody's processes, as seen by one of them.
    def limit_processes(pid, number)
      assert system(*AS_NOBODY, "prlimit", "--pid", pid.to_s, "--nproc=#{number}:", err: File::NULL)
    end

    def test_a_folder_that_cannot_be_written_is_served_with_the_defaults
      write "tmp/pids/.keep", ""
      server = start_as_nobody("-e", "production", "-w", "1")
      assert_equal "200", get(server, "/").code
      out, code = leat_as_nobody("status")
      assert_equal 0, code, out
      assert_equal 0, leat_as_nobody("healthcheck").last
      assert_equal 0, leat_as_nobody("restart").last
      out, code = leat_as_nobody("stop")
      assert_equal 0, code, out
      assert_equal 0, wait_exit(server.pid)
      assert_empty Dir.children(File.join(@dir, "tmp/pids")) - [".keep"]
    end

    def test_two_users_may_serve_the_same_folder
      mine = start("-e", "production", "-w", "1")
      theirs = start_as_nobody("-e", "production", "-w", "1")
      out, code = leat_as_nobody("status", "--json")
      assert_equal 0, code, out
      assert_equal theirs.pid, JSON.parse(out)["pid"]
      assert_equal mine.pid, status(mine)["pid"]
      assert_equal 0, leat_as_nobody("stop").last
      assert_equal "200", get(mine, "/").code
    end

    def test_a_fork_that_fails_is_tried_again_while_the_others_serve
      server = start_as_nobody("-e", "production", "-w", "2", "-t", "1")
      eventually { server.output.scan("serves:").size == 2 }
      mold = processes(server, "mold").first
      limit_processes(mold, "1")
      Process.kill("KILL", workers(server).first)
      eventually(10) { server.output.include?("cannot start a worker") }
      control = Dir.glob("/tmp/leat-#{NOBODY}/#{server.pid}.sock").first
      out, = leat("status", "--json", "--control", control)
      assert_equal "degraded", JSON.parse(out)["pools"].first["state"]
      assert_equal "200", get(server, "/").code
      limit_processes(mold, "1000")
      eventually(15, "healed") { workers(server).size == 2 }
    end
  end
end
