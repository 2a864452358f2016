# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "fcntl"

# The running program is exchanged (`leat upgrade`, USR2): same PID, same sockets, same workers, nothing
# lost; and one that cannot go on leaves the old one serving.
class UpgradeTest < ServerCase
  APP = <<~RUBY
    run(proc { |env|
      case env["PATH_INFO"]
      when "/pid" then [200, {"content-type" => "text/plain"}, [Process.pid.to_s]]
      when "/slow" then sleep(1); [200, {}, ["slow"]]
      when "/stream"
        [200, {"content-type" => "text/event-stream"}, Enumerator.new { |out| 400.times { |i| out << "data: \#{i}\\n\\n"; sleep(0.05) } }]
      when "/echo"
        io = env["rack.hijack"].call
        io.write("HTTP/1.1 101 Switching Protocols\\r\\nupgrade: echo\\r\\nconnection: Upgrade\\r\\n\\r\\n")
        Thread.new { loop { io.write(io.readpartial(100)) } rescue io.close }
        [-1, {}, []]
      else [200, {}, [env["rack.input"].read]]
      end
    })
  RUBY

  SETTINGS = "environment: production\nworkers: 2\nthreads: 4\npid: leat.pid\ntimeouts: {drain: 5s, stream_drain: 5s}\n"

  # Another build: the same program with another version, beside the same Ruby files.
  def other_build(version = "9.9.9")
    folder = File.join(@dir, "build-#{version}")
    FileUtils.mkdir_p(File.join(folder, "build"))
    FileUtils.ln_s(File.join(ROOT, "lib"), File.join(folder, "lib")) unless File.symlink?(File.join(folder, "lib"))
    path = File.join(folder, "build/leat")
    File.binwrite(path, File.binread(BINARY).gsub("0.1.0".b, version.b))
    File.chmod(0o755, path)
    path
  end

  # A build that differs in one word of the program; the linker may have made it the end of another text.
  def build_with(word, other)
    path = other_build
    bytes = File.binread(path)
    assert_includes bytes, "#{word}\0".b
    File.binwrite(path, bytes.gsub("#{word}\0".b, "#{other}\0".b))
    path
  end

  # Another version with Ruby files of its own.
  def other_gem(version)
    path = other_build(version)
    library = File.expand_path("../../lib", path)
    FileUtils.rm_f(library)
    FileUtils.cp_r(File.join(ROOT, "lib"), library)
    File.write(File.join(library, "leat/version.rb"), File.read(File.join(library, "leat/version.rb")).sub("0.1.0", version))
    path
  end

  def serve(*options, **more)
    app(APP)
    config(SETTINGS) unless File.exist?(File.join(@dir, "leat.yml"))
    start(*options, **more)
  end

  # The verb as that program says it: [output, exit status].
  def upgrade(program, seconds: START_SECONDS)
    Timeout.timeout(seconds) do
      out, status = Open3.capture2e(clean_env, program, "upgrade", chdir: @dir, stdin_data: "")
      [out, status.exitstatus]
    end
  end

  def must_upgrade(program)
    out, code = upgrade(program)
    assert_equal 0, code, out
    out
  end

  # Asks for a program that is no leat, which no verb would name.
  def ask(server, path)
    socket = UNIXSocket.new(control_socket(server))
    socket.write("upgrade #{path}\n")
    Timeout.timeout(START_SECONDS) { socket.read }
  ensure
    socket&.close
  end

  def control_socket(server)
    ["/run/leat", File.join(@dir, "run/leat")].map { |run| File.join(run, "#{server.pid}.sock") }.find { |path| File.socket?(path) }
  end

  def descriptors(pid) = Dir.children("/proc/#{pid}/fd").size

  def fronts(server) = processes(server, "front")

  def one_front(server)
    eventually(10, "the former front is gone") { fronts(server).size == 1 }
  end

  # Clients that ask all the time, half of them on connections that they keep.
  class Crowd
    attr_reader :answers, :lost

    def initialize(port, size)
      @port, @answers, @lost, @go = port, 0, [], true
      @lock = Mutex.new
      @threads = Array.new(size) { |i| Thread.new { i.even? ? keep_asking : ask_anew } }
    end

    def stop
      @go = false
      @threads.each(&:join)
    end

    private

    def note(code, body, expected)
      @lock.synchronize { code == "200" && body == expected ? @answers += 1 : @lost << "#{code} #{body}" }
    end

    def ask_anew
      while @go
        body = rand.to_s
        begin
          reply = Net::HTTP.start("127.0.0.1", @port, read_timeout: 20) { |http| http.post("/", body) }
          note(reply.code, reply.body, body)
        rescue SystemCallError, IOError, Timeout::Error => error
          note(error.class.name, error.message, body)
        end
      end
    end

    # As every client does that keeps connections: it opens another one when the answer said it is the last.
    def keep_asking
      while @go
        begin
          Net::HTTP.start("127.0.0.1", @port, read_timeout: 20, max_retries: 0) do |http|
            http.keep_alive_timeout = 30
            loop do
              body = rand.to_s
              reply = http.post("/", body)
              note(reply.code, reply.body, body)
              break if !@go || reply["connection"] == "close"
            end
          end
        rescue SystemCallError, IOError, Timeout::Error => error
          note(error.class.name, error.message, "")
        end
      end
    end
  end

  def with_crowd(server, size: 8)
    crowd = Crowd.new(server.port, size)
    yield crowd
    crowd.stop
    assert_empty crowd.lost, "requests were lost"
    crowd
  ensure
    crowd&.stop
  end

  def lock_holder(path)
    File.open(path) do |file|
      lock = [Fcntl::F_WRLCK, IO::SEEK_SET, 0, 0, 0].pack("ssx4qqix4")
      file.fcntl(Fcntl::F_GETLK, lock)
      type, _, _, _, pid = lock.unpack("ssx4qqi")
      type == Fcntl::F_UNLCK ? nil : pid
    end
  end

  def test_to_another_build_and_back_under_load_loses_nothing
    server = serve
    other = other_build
    before = workers(server).sort
    with_crowd(server) do |crowd|
      [[other, "9.9.9"], [BINARY, "0.1.0"], [other, "9.9.9"]].each do |program, version|
        out = must_upgrade(program)
        assert_includes out, version
        assert_equal version, status(server)["version"]
        seen = crowd.answers
        eventually(20, "requests are answered") { crowd.answers > seen + 50 }
      end
    end
    assert_equal before, workers(server).sort, "workers are the same"
    one_front(server)
    assert_equal server.pid, status(server)["pid"]
    assert_equal 0, stop(server)
  end

  def test_nothing_is_left_behind
    server = serve
    other = other_build
    must_upgrade(other)
    one_front(server)
    counts = [descriptors(server.pid), descriptors(fronts(server).first), children_of(server.pid).size]
    4.times { |i| must_upgrade(i.odd? ? other : BINARY) }
    one_front(server)
    assert_equal counts, [descriptors(server.pid), descriptors(fronts(server).first), children_of(server.pid).size]
    assert_equal 0, stop(server)
    assert_empty Dir.glob(File.join(@dir, "run/leat/*")) + Dir.glob("/run/leat/#{server.pid}*")
    refute_path_exists File.join(@dir, "leat.pid")
  end

  def test_streams_and_requests_under_way_are_not_cut
    server = serve
    other = other_build
    stream, echo, slow = Array.new(3) { TCPSocket.new("127.0.0.1", server.port) }
    stream.write("GET /stream HTTP/1.1\r\nhost: a\r\n\r\n")
    echo.write("GET /echo HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n")
    assert_equal 101, read_reply(echo).status
    nil until stream.gets.include?("data: 3")
    slow.write("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n")
    [other, BINARY].each { |program| must_upgrade(program) }
    assert_equal "slow", read_reply(slow).body
    5.times do |i|
      echo.write("word #{i}")
      assert_equal "word #{i}", echo.readpartial(100)
    end
    seen = stream.gets until seen.to_s.start_with?("data: ") && seen[/\d+/].to_i > 60
    assert_operator fronts(server).size, :>, 1
    [stream, echo, slow].each(&:close)
    one_front(server)
  end

  def test_everything_works_afterwards
    server = serve
    must_upgrade(other_build)
    first = workers(server)
    Process.kill("KILL", first.first)
    eventually(20, "the worker is replaced") { (workers(server) - first).any? && pool(server)["workers"].size == 2 }
    assert_equal 1, pool(server)["exits"]["killed"]
    out, code = leat("restart")
    assert_equal 0, code, out
    assert_includes out, "generation 2"
    eventually(20, "the former generation is gone") { (workers(server) & first).empty? }
    assert_equal "200", get(server, "/").code
    out, code = leat("reopen")
    assert_equal 0, code, out
    kept = workers(server)
    config("#{SETTINGS}pulse: /up\n")
    out, code = leat("reload")
    assert_equal 0, code, out
    assert_equal "200", get(server, "/up").code
    must_upgrade(BINARY)
    assert_equal "200", get(server, "/up").code
    assert_equal kept, workers(server)
    out, code = leat("stop")
    assert_equal [0, "stopped\n"], [code, out]
    assert_equal 0, wait_exit(server.pid)
  end

  def test_the_pid_file_stays_locked_and_the_server_is_found
    server = serve
    file = File.join(@dir, "leat.pid")
    must_upgrade(other_build)
    assert_equal server.pid, lock_holder(file)
    assert_equal "#{server.pid}\n", File.read(file)
    assert_equal 0, leat("status").last
    assert_equal 0, leat("status", "-P", "leat.pid").last
    out, code = leat("start", "-p", free_port)
    assert_equal 1, code
    assert_includes out, "already running as PID #{server.pid}"
    assert_equal 0, stop(server)
  end

  def test_counters_and_age_go_on
    server = serve
    5.times { get(server, "/") }
    age = status(server)["uptime_s"]
    must_upgrade(other_build)
    assert_operator status(server)["requests"]["total"], :>=, 5
    assert_operator status(server)["uptime_s"], :>=, age
    assert_equal 1, pool(server)["workers"].map { |worker| worker["generation"] }.uniq.size
  end

  def script(name, text, mode: 0o755)
    path = write(name, text)
    File.chmod(mode, path)
    path
  end

  def test_a_program_that_cannot_go_on_changes_nothing
    server = serve
    front = fronts(server)
    {
      File.join(@dir, "missing") => "No such file or directory",
      script("plain", "#!/bin/sh\nexit 0\n", mode: 0o644) => "Permission denied",
      script("garbage", "\x7fELF nothing") => "Exec format error",
      script("refuses", "#!/bin/sh\necho 'cannot open the gate' >&2\nexit 3\n") => "cannot open the gate",
      script("crashes", "#!/bin/sh\nkill -SEGV $$\n") => "signal 11",
      "/bin/true" => "does not know how to go on"
    }.each do |program, words|
      answer = ask(server, program)
      assert answer.start_with?("failed\n"), answer
      assert_includes answer, words
      assert_equal "200", get(server, "/").code
    end
    assert_equal front, fronts(server)
    assert_equal "0.1.0", status(server)["version"]
    assert_includes server.output, "upgrade failed"
    must_upgrade(other_build)
    assert_equal "9.9.9", status(server)["version"]
  end

  def test_a_configuration_with_mistakes_is_refused_with_all_of_them
    server = serve
    config("#{SETTINGS}thread: 5\nlistem: 80\n")
    out, code = upgrade(other_build)
    assert_equal 1, code
    assert_includes out, "leat.yml:6:1: thread:"
    assert_includes out, "leat.yml:7:1: listem:"
    assert_equal "0.1.0", status(server)["version"]
    config(SETTINGS)
    must_upgrade(other_build)
  end

  def test_usr2_takes_the_program_that_stands_there_now
    app(APP)
    config(SETTINGS)
    program = other_build("0.1.1")
    newer = other_build("0.1.2")
    define_singleton_method(:binary) { program }
    server = start
    FileUtils.rm_rf(program)
    File.rename(newer, program)
    Process.kill("USR2", server.pid)
    eventually(20, "the other program runs") { status(server)["version"] == "0.1.2" }
    Process.kill("USR2", server.pid)
    eventually(20, "a second time") { server.output.scan("upgraded: PID").size == 2 }
    assert_equal "200", get(server, "/").code
    FileUtils.rm_rf(program)
    Process.kill("USR2", server.pid)
    eventually(20, "it says why not") { server.output.include?("upgrade failed") }
    assert_equal "200", get(server, "/").code
  end

  def test_it_waits_for_a_restart_and_a_stop_ends_it
    app("sleep 0.5\n#{APP}")
    config(SETTINGS)
    server = start
    restart = Thread.new { leat("restart") }
    eventually(10, "the restart is under way") { pool(server)["state"] == "restarting" }
    out = must_upgrade(other_build)
    assert_includes out, "9.9.9"
    out, code = restart.value
    assert_equal 0, code, out
    assert_includes server.output, "upgrade: waits for the end of a restart"
    assert_equal [2], pool(server)["workers"].map { |worker| worker["generation"] }.uniq

    waits = script("waits", "#!/bin/sh\nexec sleep 60\n")
    answer = Thread.new { ask(server, waits) }
    eventually(10, "the child runs") { children_of(server.pid).any? { |_, title| title.include?("sleep") } }
    assert_includes ask(server, waits), "an upgrade is under way"
    assert_equal 0, stop(server)
    assert_includes answer.value, "the server was stopped meanwhile"
    assert_empty(children_of(1).select { |_, title| title.include?("sleep 60") && false })
  end

  def test_other_ruby_files_mean_other_workers
    server = serve
    before = workers(server)
    with_crowd(server, size: 4) do
      must_upgrade(other_gem("9.9.9"))
      eventually(30, "all workers are new") { (workers(server) & before).empty? && pool(server)["state"] == "up" }
    end
    assert_equal [2], pool(server)["workers"].map { |worker| worker["generation"] }.uniq
    one_front(server)
    assert_equal 0, stop(server)
  end

  def test_a_pool_of_another_shape_gets_new_workers_and_the_former_ones_leave
    server = serve
    before = workers(server)
    with_crowd(server, size: 4) do
      config(SETTINGS.sub("threads: 4", "threads: 2"))
      must_upgrade(other_build)
      eventually(30, "the former workers leave") { (workers(server) & before).empty? }
    end
    assert_equal [2], pool(server)["workers"].map { |worker| worker["threads"] }.uniq
    one_front(server)
    eventually(10, "one mold is left") { processes(server, "mold").size == 1 }
    assert_equal 0, stop(server)
  end

  def test_fronts_that_the_other_build_does_not_understand_drain_all_the_same
    server = serve
    other = build_with("worker-late", "worker-lame")
    before = workers(server).sort
    echo = TCPSocket.new("127.0.0.1", server.port)
    echo.write("GET /echo HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n")
    assert_equal 101, read_reply(echo).status
    with_crowd(server, size: 6) do |crowd|
      [other, BINARY].each do |program|
        must_upgrade(program)
        seen = crowd.answers
        eventually(20, "requests are answered") { crowd.answers > seen + 30 }
      end
    end
    echo.write("still here")
    assert_equal "still here", echo.readpartial(100)
    assert_equal before, workers(server).sort
    echo.close
    one_front(server)
    assert_equal 0, stop(server)
  end

  def test_a_board_of_another_layout_means_new_workers_beside_the_former_ones
    server = serve
    other = build_with("layout", "lay0ut")
    before = workers(server)
    molds = processes(server, "mold")
    echo = TCPSocket.new("127.0.0.1", server.port)
    echo.write("GET /echo HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n")
    assert_equal 101, read_reply(echo).status
    with_crowd(server, size: 6) { must_upgrade(other) }
    assert_equal before, workers(server) & before
    assert_equal 2, pool(server)["workers"].size
    echo.write("still here")
    assert_equal "still here", echo.readpartial(100)
    echo.close
    eventually(30, "the former ones leave") { ((workers(server) + processes(server, "mold")) & (before + molds)).empty? }
    one_front(server)
    assert_equal "200", get(server, "/").code
    with_crowd(server, size: 4) { must_upgrade(BINARY) }
    assert_equal 0, stop(server)
    refute_includes server.output, "Traceback"
  end

  def test_a_release_that_does_not_start_leaves_the_former_workers_serving
    server = serve
    before = workers(server).sort
    app("raise 'broken'\n")
    config(SETTINGS.sub("threads: 4", "threads: 2"))
    out, code = upgrade(other_build)
    assert_equal 1, code
    assert_includes out, "RuntimeError: broken"
    assert_equal "200", get(server, "/").code
    assert_equal before, workers(server).sort
    app(APP)
    eventually(30, "it heals by itself") { (workers(server) & before).empty? && workers(server).size == 2 }
    assert_equal "200", get(server, "/").code
    one_front(server)
    assert_equal 0, stop(server)
  end

  def test_pools_and_listeners_that_come_and_go
    ports = [free_port, free_port, free_port]
    write("a/config.ru", "run(proc { [200, {}, ['a']] })\n")
    write("b/config.ru", "run(proc { [200, {}, ['b']] })\n")
    settings = lambda do |listen, pools|
      sites = pools.map { |name| "  - {host: #{name}.test, pool: #{name}}\n" }.join
      "environment: production\nlisten: [#{listen.join(", ")}]\nworkers: 1\npid: leat.pid\npools:\n" \
        "#{pools.map { |name| "  #{name}: {app: #{name}}\n" }.join}sites:\n#{sites}"
    end
    config(settings.(ports[0, 2], %w[a b]).sub("workers: 1\n", "pool_defaults: {workers: 1}\n"))
    server = start(:no_port)
    ask = ->(port, name) { Net::HTTP.start("127.0.0.1", port) { |client| client.get("/", "host" => "#{name}.test").body } }
    assert_equal %w[a b], [ask.(ports[0], "a"), ask.(ports[1], "b")]
    config(settings.([ports[0], ports[2]], %w[b]).sub("workers: 1\n", "pool_defaults: {workers: 1}\n"))
    kept = status(server)["pools"].find { |pool| pool["name"] == "b" }["workers"].first["pid"]
    must_upgrade(other_build)
    assert_equal %w[b b], [ask.(ports[0], "b"), ask.(ports[2], "b")]
    assert_equal [kept], eventually(10, "the other pool is gone") { workers(server).size == 1 && workers(server) }
    eventually(10, "nobody listens there any more") do
      TCPSocket.new("127.0.0.1", ports[1]).close
      nil
    rescue Errno::ECONNREFUSED
      true
    end
    assert_equal ["b"], status(server)["pools"].map { |pool| pool["name"] }
    assert_equal 0, stop(server)
  end

  def test_without_a_server_there_is_nothing_to_upgrade
    app(APP)
    out, code = leat("upgrade")
    assert_equal [1, "not running\n"], [code, out]
  end

  def test_only_files_and_a_unix_socket
    write("public/a.txt", "a file\n")
    config("environment: production\nlisten: [\"unix:web.sock\"]\npid: leat.pid\n")
    server = start(:no_port)
    path = File.join(@dir, "web.sock")
    inode = File.stat(path).ino
    must_upgrade(other_build)
    assert_equal inode, File.stat(path).ino
    UNIXSocket.open(path) do |socket|
      socket.write("GET /a.txt HTTP/1.0\r\nhost: a\r\n\r\n")
      assert_includes socket.read, "a file"
    end
    assert_equal 0, stop(server)
    refute_path_exists path
  end

  def test_in_the_background_with_logs
    app(APP)
    port = free_port
    config("#{SETTINGS}log: leat.log\naccess_log: access.log\nlisten: [#{port}]\n")
    out, code = leat("start", "-d")
    assert_equal 0, code, out
    pid = File.read(File.join(@dir, "leat.pid")).to_i
    server = Server.new(pid, @dir, port, File.join(@dir, "leat.log"))
    get(server, "/?1")
    must_upgrade(other_build)
    get(server, "/?2")
    leat("stop")
    eventually(20, "it ends") { gone?(pid) }
    assert_includes server.output, "upgraded: PID #{pid}"
    access = File.read(File.join(@dir, "access.log"))
    assert_equal %w[/?1 /?2], access.scan(%r{GET (/\S+)}).flatten.sort
  ensure
    end_process(pid) if pid && !gone?(pid)
  end

  def test_a_pool_on_demand
    app(APP)
    config(SETTINGS.sub("workers: 2", "workers: 0..2"))
    server = start
    must_upgrade(other_build)
    assert_equal "down", pool(server)["state"]
    assert_equal "200", get(server, "/").code
    must_upgrade(BINARY)
    worker = workers(server)
    assert_equal worker.map(&:to_s), [get(server, "/pid").body]
  end
end
