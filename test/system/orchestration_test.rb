# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "shellwords"

# Whoever starts, watches and stops the server: a service manager, a container's runtime, a balancer.
class OrchestrationTest < ServerCase
  OK = 'run(proc { |env| sleep(env["QUERY_STRING"].to_f); [200, {"content-type" => "text/plain"}, [Process.pid.to_s]] })'
  REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  def setup
    super
    app OK
  end

  # A service manager's socket: what it heard, and when.
  class Manager
    attr_reader :path, :heard

    def initialize(path)
      @path = path
      @socket = Socket.new(:UNIX, :DGRAM)
      @socket.bind(Addrinfo.unix(path))
      @heard = []
      @thread = Thread.new { loop { @heard << [@socket.recv(4000), Process.clock_gettime(Process::CLOCK_MONOTONIC)] } }
    end

    def texts = @heard.map(&:first)

    # The state of each datagram that has one, in order.
    def states = texts.filter_map { |text| text[/^(READY|RELOADING|STOPPING)=1$/, 1] }

    def close
      @thread.kill
      @socket.close
    end
  end

  def manager = @manager ||= Manager.new(File.join(@dir, "notify"))

  def teardown
    @manager&.close
    super
  end

  # The title of a process of the server.
  def title(pid) = File.read("/proc/#{pid}/cmdline").delete("\0")

  # --- a service manager

  def test_a_service_manager_hears_what_happens
    app "sleep 1\n#{OK}"
    server = start("-e", "production", "-w", "1", "-P", "leat.pid", env: { "NOTIFY_SOCKET" => manager.path, "WATCHDOG_USEC" => "900000" })
    eventually { manager.states == ["READY"] }
    ready = manager.texts.find { |text| text.start_with?("READY") }
    assert_match(/^MAINPID=#{server.pid}$/, ready)
    assert_match(/^STATUS=serving: /, ready)
    assert_equal 0, leat("restart", "-P", "leat.pid").last
    assert_equal 0, stop(server)
    eventually { manager.states.last == "STOPPING" }
    assert_equal %w[READY RELOADING READY STOPPING], manager.states
    reloading = manager.texts.find { |text| text.start_with?("RELOADING") }
    assert_operator reloading[/^MONOTONIC_USEC=(\d+)$/, 1].to_i, :<=, now * 1_000_000
    assert_match(/^STATUS=restarting: /, reloading)
  end

  def test_signs_of_life_come_while_the_application_loads_and_with_ready
    app "sleep 1\n#{OK}"
    server = start("-e", "production", "-w", "1", env: { "NOTIFY_SOCKET" => manager.path, "WATCHDOG_USEC" => "900000" })
    eventually { manager.states == ["READY"] }
    words = manager.texts.map { |text| text[/\A\w+/] } - ["STATUS"]
    ready = words.index("READY")
    assert_equal "EXTEND_TIMEOUT_USEC", words.first
    assert_includes words[1...ready], "WATCHDOG"
    eventually { manager.texts.count("WATCHDOG=1") > words.count("WATCHDOG") + 3 }
    assert_equal "WATCHDOG", manager.texts.map { |text| text[/\A\w+/] }.-(["STATUS"])[ready + 1]
    gaps = manager.heard.select { |text, _| text == "WATCHDOG=1" }.each_cons(2).map { |(_, first), (_, second)| second - first }
    assert_operator gaps.max, :<, 0.8
    assert_equal 0, stop(server)
  end

  def test_a_start_and_a_stop_say_how_much_patience_they_may_need
    config "start_timeout: 200s\ntimeouts: {drain_delay: 0s, drain: 100s, stream_drain: 50s}\n"
    server = start("-e", "production", "-w", "1", env: { "NOTIFY_SOCKET" => manager.path })
    assert_equal 0, stop(server)
    eventually { manager.states.last == "STOPPING" }
    first, last = manager.texts.filter_map { |text| text[/^EXTEND_TIMEOUT_USEC=(\d+)$/, 1]&.to_i }.minmax_by { |usec| -usec }
    assert_equal 210_000_000, first
    assert_operator last, :>, 150_000_000
    assert_operator last, :<, 200_000_000
  end

  def test_a_start_that_failed_says_why
    app "raise 'boom'"
    server = start("-e", "production", wait: false, env: { "NOTIFY_SOCKET" => manager.path })
    assert_equal 1, wait_exit(server.pid)
    eventually { manager.texts.any? { |text| text.match?(/\ASTATUS=start failed: .*RuntimeError: boom/) } }
    refute_includes manager.states, "READY"
  end

  def test_a_watchdog_of_another_process_and_no_manager_are_no_trouble
    server = start("-e", "production", "-w", "1", env: { "NOTIFY_SOCKET" => File.join(@dir, "nobody"), "WATCHDOG_USEC" => "10000", "WATCHDOG_PID" => "1" })
    assert_equal "200", get(server, "/").code
    assert_equal 0, stop(server)
    other = start("-e", "production", "-w", "1", env: { "WATCHDOG_USEC" => "10000" })
    assert_equal "200", get(other, "/").code
  end

  # --- sockets that were passed

  where(system("systemd-socket-activate --version", out: File::NULL, err: File::NULL), "systemd-socket-activate") do
    # The sockets of the list are passed with the first connection to one of them.
    def activate(*sockets, names: nil, options: [])
      out = File.join(@dir, "activated")
      listen = sockets.flat_map { |socket| ["-l", socket] }
      named = names ? ["--fdname=#{names}"] : []
      kept = ["-E", "XDG_RUNTIME_DIR=#{@dir}/run", "-E", "PATH=#{ENV.fetch("PATH")}"]
      pid = spawn_child(clean_env, "systemd-socket-activate", *listen, *named, *kept, binary, "start", "-e", "production",
                        "-w", "1", *options, chdir: @dir, out: out, err: [:child, :out])
      eventually { File.read(out).include?("Listening on") }
      Server.new(pid, @dir, nil, out)
    end

    def ask(port, path = "/")
      eventually(START_SECONDS) { Net::HTTP.get_response("127.0.0.1", path, port) rescue nil }
    end

    def test_a_passed_socket_serves_the_listener_of_its_address_and_others_are_opened_beside_it
      port, other = free_port, free_port
      server = activate("127.0.0.1:#{port}", options: ["-b", "127.0.0.1:#{port}", "-b", "127.0.0.1:#{other}"])
      assert_equal "200", ask(port).code
      assert_equal "200", ask(other).code
      assert_equal ["127.0.0.1:#{port}", "127.0.0.1:#{other}"], status(server)["listeners"].map { |listener| listener["address"] }
      assert_equal 0, stop(server)
    end

    def test_passed_sockets_say_where_to_listen_when_nothing_else_does
      port, admin = free_port, free_port
      server = activate("127.0.0.1:#{port}", "127.0.0.1:#{admin}", names: "web:admin")
      assert_equal "200", ask(port).code
      eventually { ask(admin, "/ready").body == "ready\n" }
      assert_equal ["127.0.0.1:#{port}"], status(server)["listeners"].map { |listener| listener["address"] }
      assert_equal 0, stop(server)
    end

    def test_a_passed_unix_socket_is_used_and_never_removed
      path = File.join(@dir, "web.sock")
      server = activate(path, options: ["-b", "unix:web.sock"])
      UNIXSocket.open(path) do |socket|
        socket.write(REQUEST)
        assert_equal 200, read_reply(socket, seconds: START_SECONDS).status
      end
      assert_equal 0, stop(server)
      assert File.socket?(path)
    end
  end

  # --- a balancer

  def test_before_a_stop_the_server_is_not_ready_and_goes_on_serving
    admin = free_port
    config "admin: 127.0.0.1:#{admin}\npulse: /pulse\nworkers: 1\ntimeouts: {drain_delay: 60s}\n"
    server = start("-e", "production")
    ready = -> { Net::HTTP.get_response("127.0.0.1", "/ready", admin).code }
    assert_equal %w[200 200], [ready.call, get(server, "/pulse").code]
    connect(server) do |stayer|
      stayer.write(REQUEST)
      assert_nil read_reply(stayer).headers["connection"]
      Process.kill("TERM", server.pid)
      eventually { ready.call == "503" }
      assert_equal "503", get(server, "/pulse").code
      assert_equal ["not ready\n", 1], leat("healthcheck")
      # Whoever had a connection, and whoever comes now, is served and told that this was its last answer.
      stayer.write(REQUEST)
      assert_equal [200, "close"], read_reply(stayer).then { |reply| [reply.status, reply.headers["connection"]] }
      assert_equal "", stayer.read
    end
    connect(server) do |late|
      late.write(REQUEST)
      assert_equal [200, "close"], read_reply(late).then { |reply| [reply.status, reply.headers["connection"]] }
      assert_equal "", late.read
    end
    assert_match(/ leaving\z/, title(server.pid))
    eventually { pool(server)["slots"]["busy"].zero? }
    # The second signal does not wait, and nothing is lost by it.
    assert_equal 0, stop(server)
  end

  def test_a_front_that_dies_in_the_delay_is_replaced_by_one_that_leaves
    admin = free_port
    config "admin: 127.0.0.1:#{admin}\nworkers: 1\ntimeouts: {drain_delay: 60s}\n"
    server = start("-e", "production")
    Process.kill("TERM", server.pid)
    eventually { status(server)["pools"].first["state"] == "draining" }
    Process.kill("KILL", processes(server, "front").first)
    reply = eventually { raw(server, REQUEST).first rescue nil }
    assert_equal 200, reply.status
    eventually { raw(server, REQUEST).first.headers["connection"] == "close" }
    assert_equal "503", Net::HTTP.get_response("127.0.0.1", "/ready", admin).code
    eventually { pool(server)["slots"]["busy"].zero? }
    assert_equal 0, stop(server)
  end

  def test_after_the_delay_the_server_drains_and_ends
    config "workers: 1\ntimeouts: {drain_delay: 300ms}\n"
    server = start("-e", "production")
    connect(server) do |client|
      client.write("GET /?0.8 HTTP/1.1\r\nHost: a\r\n\r\n")
      eventually { pool(server)["slots"]["busy"] == 1 }
      assert_equal 0, stop(server)
      assert_equal 200, read_reply(client).status
    end
  end

  # --- PID 1 of a container

  where(system("unshare --pid --fork --mount-proc true", out: File::NULL, err: File::NULL), "PID namespaces") do
    CONTAINED = <<~RUBY
      run(proc { |env|
        case env["PATH_INFO"]
        when "/orphan" then Process.wait(fork { Process.setsid; fork { exit!(0) }; exit!(0) })
        when "/signal" then Process.kill(env["QUERY_STRING"], 1)
        when "/slow" then sleep(env["QUERY_STRING"].to_f)
        end
        [200, {"content-type" => "text/plain"}, [Process.ppid.to_s]]
      })
    RUBY

    # The server as PID 1 in a namespace with a /run of its own; @inner is its PID outside.
    def contain(*options, wait: true)
      app CONTAINED unless File.read(File.join(@dir, "config.ru")).include?("raise")
      port, out = free_port, File.join(@dir, "contained")
      inside = ["mount -t tmpfs none /run", "exec #{[binary, "start", "-e", "production", "-w", "1", "-p", port.to_s, *options].shelljoin}"]
      pid = spawn_child(clean_env.merge("XDG_RUNTIME_DIR" => nil), "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                        inside.join(" && "), chdir: @dir, out: out, err: [:child, :out], in: "/dev/null")
      eventually(START_SECONDS) { File.read(out).include?("ready:") } if wait
      @inner = children_of(pid).first&.first if wait
      Server.new(pid, @dir, port, out)
    end

    def zombies(parent)
      Dir.glob("/proc/[0-9]*/stat").count do |file|
        File.read(file)[/\) (\S \d+)/, 1] == "Z #{parent}"
      rescue Errno::ENOENT, Errno::ESRCH
        false
      end
    end

    def test_pid_1_serves_reaps_what_others_leave_and_stops_with_0
      server = contain
      assert_equal "1", get(server, "/").body
      before = children_of(@inner).map(&:first)
      20.times { assert_equal "200", get(server, "/orphan").code }
      eventually(10, "no zombie stays") { zombies(@inner).zero? }
      eventually(10, "no orphan stays") { children_of(@inner).map(&:first) == before }
      Process.kill("TERM", @inner)
      assert_equal 0, wait_exit(server.pid)
      assert_match(/master 1 info stopped: exit status 0$/, server.output)
    end

    def test_signals_from_inside_the_container_act_as_anywhere
      server = contain
      %w[ALRM PIPE WINCH CONT VTALRM].each { |signal| assert_equal "200", get(server, "/signal?#{signal}").code }
      assert_equal "1", get(server, "/").body
      get(server, "/signal?TERM")
      assert_equal 0, wait_exit(server.pid)
    end

    def test_exit_statuses_of_pid_1_are_those_of_any_server
      config "timeouts: {drain: 200ms}\n"
      server = contain
      connect(server) do |client|
        client.write("GET /slow?30 HTTP/1.1\r\nHost: a\r\n\r\n")
        worker = children_of(@inner).find { |_, title| title.start_with?("leat: worker") }.first
        eventually { File.read("/proc/#{@inner}/cmdline").include?("serving") && gone?(worker) == false && leat_inside("status").first.include?("1 of 3 busy") }
        Process.kill("TERM", @inner)
        assert_equal 4, wait_exit(server.pid)
      end
      app "raise 'boom'"
      assert_equal 1, wait_exit(contain(wait: false).pid)
    end

    # A verb as a probe runs it: in the namespaces of the server.
    def leat_inside(*arguments)
      out, status = Open3.capture2e(clean_env.merge("XDG_RUNTIME_DIR" => nil), "nsenter", "--target", @inner.to_s, "--pid", "--mount", "--wd=#{@dir}",
                                    binary, *arguments, stdin_data: "")
      [out, status.exitstatus]
    end

    def test_healthcheck_finds_the_server_in_its_container
      config "timeouts: {drain_delay: 60s}\n"
      server = contain
      eventually { leat_inside("healthcheck") == ["ready\n", 0] }
      Process.kill("TERM", @inner)
      eventually { leat_inside("healthcheck") == ["not ready\n", 1] }
      assert_equal "200", get(server, "/").code
      eventually { leat_inside("status").first.include?("0 of 3 busy") }
      Process.kill("TERM", @inner)
      assert_equal 0, wait_exit(server.pid)
    end

    def test_pid_1_does_not_go_into_the_background
      server = contain("-d", wait: false)
      assert_equal 1, wait_exit(server.pid)
      assert_match(/-d would end this container/, server.output)
    end

    def test_everything_ends_with_pid_1
      server = contain
      everybody = children_of(@inner).map(&:first)
      assert_operator everybody.size, :>=, 3
      Process.kill("KILL", @inner)
      wait_exit(server.pid)
      everybody.each { |pid| eventually { gone?(pid) } }
    end
  end

  # --- exit statuses

  def test_a_stop_that_ended_well_is_0_by_every_signal
    %w[TERM INT QUIT].each do |signal|
      server = start("-e", "production", "-w", "1")
      assert_equal 0, stop(server, signal), signal
    end
  end

  def test_a_request_that_the_drain_cut_is_4_and_a_failed_start_1
    config "workers: 1\ntimeouts: {drain: 200ms}\n"
    server = start("-e", "production")
    connect(server) do |client|
      client.write("GET /?30 HTTP/1.1\r\nHost: a\r\n\r\n")
      eventually { pool(server)["slots"]["busy"] == 1 }
      assert_equal 4, stop(server)
    end
    app "raise 'boom'"
    assert_equal 1, wait_exit(start("-e", "production", wait: false).pid)
    assert_equal 2, leat("start", "--no-such-option").last
  end

  # --- titles

  def test_titles_say_pool_release_and_state
    write "releases/20261201/config.ru", OK
    File.symlink("releases/20261201", File.join(@dir, "current"))
    server = start("-e", "production", "-w", "1", File.join(@dir, "current"))
    assert_equal "leat: master #{@dir}/current (production) serving", title(server.pid)
    assert_equal "leat: front accepting", title(processes(server, "front").first)
    assert_match(/\Aleat: mold \S+@1 \(20261201\) ready\z/, title(processes(server, "mold").first))
    worker = workers(server).first
    assert_match(/\Aleat: worker \S+@1 \(20261201\) serving\z/, title(worker))
    status = status(server)
    assert_equal processes(server, "front"), status["fronts"].map { |front| front["pid"] }
    assert_equal processes(server, "mold"), status["pools"].first["molds"].map { |mold| mold["pid"] }
  end
end
