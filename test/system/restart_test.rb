# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require_relative "../rails_app"

# A new release beside the one that serves: what it is loaded from, who notices, and what happens when it is
# broken.
class RestartTest < ServerCase
  VERSION = 'V = File.read(File.expand_path("VERSION", __dir__)); run(proc { |_env| [200, {"content-type" => "text/plain"}, [V]] })'

  def pid_file = File.join(@dir, "leat.pid")
  def production(*more) = ["-e", "production", "-P", pid_file, *more]
  def restart(*options) = leat("restart", "-P", pid_file, *options)

  def restart!
    out, code = restart
    assert_equal 0, code, out
    out
  end

  # A folder releases/NUMBER with an application that answers with its number.
  def release(number, app = VERSION)
    write "releases/#{number}/config.ru", app
    write "releases/#{number}/VERSION", number.to_s
    File.join(@dir, "releases/#{number}")
  end

  # What a deploy does last.
  def deploy(number)
    link = File.join(@dir, "current.new")
    File.symlink("releases/#{number}", link)
    File.rename(link, File.join(@dir, "current"))
  end

  def start_current(*options, env: {})
    current = File.join(@dir, "current")
    start(*production(*options), dir: current, env: { "PWD" => current, **env })
  end

  def generations(server) = pool(server)["workers"].map { |worker| worker["generation"] }

  # --- under load

  # A client that asks all the time, every second request a POST with a body that nobody else sends.
  class Client
    attr_reader :codes, :posts

    def initialize(port, name, keep_alive)
      @port, @name, @codes, @posts, @count = port, name, Hash.new(0), [], 0
      @thread = Thread.new { keep_alive ? on_one_connection : on_many }
    end

    def stop
      @is_over = true
      @thread.join
    end

    private

    def connect(&block) = Net::HTTP.start("127.0.0.1", @port, read_timeout: 30, max_retries: 0, &block)

    def on_one_connection
      connect { |http| ask(http) until @is_over } until @is_over
    end

    def on_many
      connect { |http| ask(http) } until @is_over
    end

    def ask(http)
      @count += 1
      body = "#{@name}-#{@count}"
      answer = @count.odd? ? http.get("/") : http.post("/", body)
      @posts << body if @count.even?
      @codes[answer.code] += 1
    rescue SystemCallError, IOError, Timeout::Error => error
      @codes[error.class.name] += 1
      raise unless http.started?
    end
  end

  POSTS = <<~RUBY
    run(proc { |env|
      body = env["rack.input"].read
      File.open("posts", "a") { |file| file.syswrite("\#{body}\n") } unless body.empty?
      sleep 0.002
      [200, {"content-type" => "text/plain"}, ["ok"]]
    })
  RUBY

  def test_ten_restarts_under_load_lose_nothing_and_run_no_post_twice
    app POSTS
    server = start(*production("-w", "2", "-t", "3"))
    clients = Array.new(20) { |i| Client.new(server.port, "c#{i}", i.even?) }
    10.times do
      restart!
      seen = clients.sum { |client| client.codes.values.sum }
      eventually(20, "clients go on") { clients.sum { |client| client.codes.values.sum } > seen + 40 }
    end
    clients.each(&:stop)
    assert_equal ["200"], clients.flat_map { |client| client.codes.keys }.uniq, clients.map(&:codes)
    assert_equal clients.flat_map(&:posts).sort, File.readlines(File.join(@dir, "posts"), chomp: true).sort
    assert_equal [11, 11], generations(server)
    eventually(10, "the processes of former generations are gone") { children_of(server.pid).size == 4 }
  end

  def test_what_runs_during_a_restart_is_finished_by_the_worker_that_has_it
    app 'run(proc { |env| sleep 0.5; [200, {}, ["#{Process.pid} #{env["rack.input"].read}"]] })'
    server = start(*production("-w", "2", "-t", "1"))
    old = workers(server)
    asked = Array.new(2) { Thread.new { http(server, "/", method: "POST", body: "once").body } }
    eventually { pool(server)["slots"]["busy"] == 2 }
    restart!
    assert_equal old.map { |pid| "#{pid} once" }.sort, asked.map(&:value).sort
    eventually { old.all? { |pid| gone?(pid) } }
  end

  # What the dead one had is asked again of a new one where that is harmless, and failed at once elsewhere.
  def test_a_worker_killed_while_it_retires_costs_what_it_could_not_repeat
    app 'run(proc { |env| sleep(File.exist?("go") ? 0 : 30); [200, {}, [Process.pid.to_s]] })'
    server = start(*production("-w", "1", "-t", "2"))
    old = workers(server).first
    asked = Thread.new { get(server, "/") }
    posted = Thread.new { http(server, "/", method: "POST", body: "once") }
    eventually { pool(server)["slots"]["busy"] == 2 }
    restart!
    write "go", ""
    assert_equal "retiring", pool(server)["workers"].find { |worker| worker["pid"] == old }["state"]
    Process.kill("KILL", old)
    assert_equal "502", posted.value.code
    assert_equal ["200", (workers(server) - [old]).first.to_s], [asked.value.code, asked.value.body]
    eventually { pool(server)["slots"]["busy"].zero? && workers(server).size == 1 }
  end

  def test_workers_follow_one_by_one_new_before_old
    app "sleep 0.1\n#{VERSION}"
    write "VERSION", "1"
    server = start(*production("-w", "3", "-t", "2"))
    restart!
    eventually { server.output.scan("reason=normal generation=1").size == 3 }
    steps = server.output.scan(/ serves: generation=2|reason=normal generation=1/).map { |step| step.include?("serves") ? 1 : -1 }
    counts = steps.each_with_object([3]) { |step, list| list << (list.last + step) }
    assert_equal 3, counts.last
    assert_operator counts.min, :>=, 3, "#{counts}"
    assert_includes [1], steps.first
  end

  # The path is there at every moment, and it is the same socket.
  def test_a_unix_socket_is_handed_over_and_never_made_anew
    config "listen: ['unix:run/leat.sock']\nworkers: 1\n"
    app VERSION
    write "VERSION", "1"
    start(:no_port, *production)
    path = File.join(@dir, "run/leat.sock")
    inode = File.stat(path).ino
    over, ended = IO.pipe
    failures = []
    poller = Thread.new do
      until over.wait_readable(0.005)
        begin
          UNIXSocket.open(path) { |socket| socket.write("GET / HTTP/1.0\r\n\r\n") && socket.read[/ 200 /] or failures << "cut" }
        rescue SystemCallError => error
          failures << error.class
        end
      end
    end
    20.times { restart! }
    ended.close
    poller.join
    assert_empty failures
    assert_equal inode, File.stat(path).ino
  end

  def test_ten_restarts_leave_the_processes_and_descriptors_that_were_there
    app VERSION
    write "VERSION", "1"
    server = start(*production("-w", "2"))
    count = -> { [children_of(server.pid).size, Dir.children("/proc/#{server.pid}/fd").size] }
    restart!
    eventually { children_of(server.pid).size == 4 }
    before = count.call
    10.times { restart! }
    eventually(10, "as many as before: #{before}") { count.call == before }
  end

  def test_a_stopped_master_is_no_dead_one
    app VERSION
    write "VERSION", "1"
    server = start(*production("-w", "2"))
    all = children_of(server.pid).map(&:first).sort
    Process.kill("STOP", server.pid)
    5.times { assert_equal "1", get(server, "/").body }
    Process.kill("CONT", server.pid)
    restart!
    assert_equal "1", get(server, "/").body
    assert_empty workers(server) & all
  end

  # --- what is loaded

  def test_a_deploy_through_a_link_is_followed_by_restarts_replacements_and_the_marker
    release(1)
    release(2)
    deploy(1)
    server = start_current("-w", "2")
    assert_equal "1", get(server, "/").body
    deploy(2)
    workers(server).first.then { |pid| Process.kill("KILL", pid) }
    eventually { workers(server).size == 2 }
    8.times { assert_equal "1", get(server, "/").body }
    restart!
    8.times { assert_equal "2", get(server, "/").body }
    FileUtils.rm_r(File.join(@dir, "releases/1"))
    workers(server).each { |pid| Process.kill("KILL", pid) }
    eventually { pool(server)["slots"]["total"] == 6 }
    8.times { assert_equal "2", get(server, "/").body }
    assert_equal [File.join(@dir, "releases/2")] * 2, pool(server)["workers"].map { |worker| worker["release"] }
    release(3)
    deploy(3)
    write "releases/3/tmp/restart.txt", ""
    eventually(15, "the marker of the new release") { get(server, "/").body == "3" }
    eventually { generations(server) == [3, 3] }
    assert_equal File.join(@dir, "releases/3"), pool(server)["release"]
  end

  def test_a_generation_whose_folder_is_gone_is_loaded_from_the_release_of_now
    release(1)
    release(2)
    deploy(1)
    server = start_current("-w", "1")
    deploy(2)
    FileUtils.rm_r(File.join(@dir, "releases/1"))
    processes(server, "mold").each { |pid| Process.kill("KILL", pid) }
    eventually { server.output.include?("releases/1 is gone; its successors come from #{@dir}/releases/2") }
    Process.kill("KILL", workers(server).first)
    eventually(10) { get(server, "/").body == "2" }
  end

  # Started by the old release's bundle; the new one has another version of a gem.
  def test_the_bundle_of_the_new_release_counts
    reply = 'run(proc { |_env| [200, {}, ["#{Rack.release} #{ENV["BUNDLE_GEMFILE"]}"]] })'
    %w[2.2.25 3.1.23].each.with_index(1) do |version, number|
      folder = release(number, reply)
      write "releases/#{number}/Gemfile", gemfile = "source \"https://rubygems.org\"\ngem \"rack\", \"#{version}\"\n"
      File.write(File.join(folder, "Gemfile.lock"), RailsApp.lock(gemfile))
    end
    deploy(1)
    current = File.join(@dir, "current")
    port = free_port
    out = File.join(@dir, "output")
    pid = Process.spawn(clean_env.merge("PWD" => current), "bundle", "exec", BINARY, "start", "-p", port.to_s, *production("-w", "1"),
                        chdir: current, out: out, err: %i[child out], in: "/dev/null")
    server = Server.new(pid, current, port, out).tap { |one| @servers << one }
    wait_ready(server)
    assert_match(%r{\A2\.2\.25 \S*/releases/1/Gemfile\z}, get(server, "/").body)
    deploy(2)
    restart!
    assert_match(%r{\A3\.1\.23 \S*/releases/2/Gemfile\z}, get(server, "/").body)
    FileUtils.rm_r(File.join(@dir, "releases/1"))
    restart!
    assert_match(/\A3\.1\.23 /, get(server, "/").body)
  end

  def test_the_environment_is_that_of_the_start_with_env_file_read_again
    app 'ENV["LEFT"] = "over"; run(proc { |_env| [200, {}, [ENV.values_at("FROM_FILE", "FROM_START", "SEEN").join(" ")]] })
         ENV["SEEN"] = ENV.key?("GONE").to_s'
    config "env_file: .env\n"
    write ".env", "FROM_FILE=one\nGONE=1\n"
    server = start(*production("-w", "1"), env: { "FROM_START" => "kept" })
    assert_equal "one kept true", get(server, "/").body
    write ".env", "FROM_FILE=two\n"
    restart!
    assert_equal "two kept false", get(server, "/").body
    write ".env", "FROM_FILE='three\n"
    out, code = restart
    assert_equal 1, code
    assert_match(/\.env:1:1: .*quote/, out)
    assert_equal "two kept false", get(server, "/").body
  end

  # --- broken releases

  HOOK = "releases/2/config/leat.rb"
  BROKEN = {
    "raises" => [->(test) { test.release(2, "def connect = raise(IOError, 'no database')\n\nconnect\n") },
                 %r{IOError: no database \(.*/releases/2/config\.ru:1\)}],
    "has_a_syntax_error" => [->(test) { test.release(2, "run proc { |env|\n") }, /SyntaxError.*config\.ru:\d/m],
    "misses_a_library" => [->(test) { test.release(2, "\nrequire 'not/there'\n") }, %r{LoadError: cannot load such file -- not/there \(.*config\.ru:2\)}],
    "exits" => [->(test) { test.release(2, "exit 0\n") }, /left by exit\(0\) while it was loaded/],
    "kills_itself" => [->(test) { test.release(2, "Process.kill(:KILL, Process.pid); sleep\n") }, /process ended by signal 9 \(Killed\) while it loaded/],
    "has_no_application" => [->(test) { test.write("releases/2/VERSION", "2") },
                             %r{neither config\.ru nor config/environment\.rb in \S*/releases/2}],
    "is_not_there" => [->(_test) {}, %r{application folder \S*/current: No such file}],
    "hangs_while_it_loads" => [->(test) { test.release(2, "sleep\n") }, /not loaded within start_timeout \(5 s\)/],
    "raises_in_after_fork" => [->(test) { test.release(2) && test.write(HOOK, "after_fork do\n  raise IOError, 'no cache'\nend\n") },
                               %r{IOError: no cache \(.*/releases/2/config/leat\.rb:2\).*after_fork}m],
    "raises_in_before_fork" => [->(test) { test.release(2) && test.write(HOOK, "before_fork { raise 'still open' }\n") },
                                %r{RuntimeError: still open \(.*leat\.rb:1\).*before_fork}m],
    "dies_in_after_fork" => [->(test) { test.release(2) && test.write(HOOK, "after_fork { exit!(3) }\n") },
                             /worker exited with status 3 before it was ready/],
    "hangs_in_after_fork" => [->(test) { test.release(2) && test.write(HOOK, "after_fork { sleep }\n") },
                              /worker was not ready within start_timeout \(5 s\)/]
  }.freeze

  BROKEN.each do |what, (break_it, words)|
    define_method("test_a_release_that_#{what}_leaves_the_old_one_serving") do
      release(1)
      deploy(1)
      write "current/leat.yml", "start_timeout: 5s\nworkers: 2\n"
      server = start_current
      server = Server.new(server.pid, @dir, server.port, server.out) # verbs find it when its folder is gone
      eventually { pool(server)["slots"]["total"] == 6 }
      before = [workers(server).sort, processes(server, "mold")]
      break_it.call(self)
      deploy(2)
      out, code = with_witness(server, longest: 4) { restart }
      assert_equal 1, code, out
      assert_match words, out
      assert_equal before, [workers(server).sort, processes(server, "mold")]
      assert_equal ["up", [1, 1]], [pool(server)["state"], generations(server)]
      assert_equal "1", get(server, "/").body
      FileUtils.rm_rf(File.join(@dir, "releases/2"))
      release(2)
      restart!
      assert_equal "2", get(server, "/").body
    end
  end

  def test_every_second_broken_release_costs_nothing
    write "VERSION", "0"
    app "#{VERSION}\nraise 'odd' if V.to_i.odd?\n"
    server = start(*production("-w", "1"))
    with_witness(server, longest: 4) do
      1.upto(6) do |number|
        write "VERSION", number.to_s
        assert_equal number % 2, restart.last
        assert_equal (number / 2 * 2).to_s, get(server, "/").body
      end
    end
    assert_equal "up", pool(server)["state"]
  end

  def test_a_mold_or_first_worker_that_is_killed_ends_the_restart_only
    app "File.write('loading', '') && sleep(1) if File.exist?('slow')\n#{VERSION}"
    write "VERSION", "1"
    server = start(*production("-w", "1"))
    before = processes(server, "mold") + workers(server)
    write "slow", ""
    asked = Thread.new { restart }
    eventually { File.exist?(File.join(@dir, "loading")) }
    (processes(server, "mold") - before).each { |pid| Process.kill("KILL", pid) }
    out, code = asked.value
    assert_equal 1, code
    assert_match(/ended by signal 9/, out)
    File.delete(File.join(@dir, "slow"))
    write "config/leat.rb", "after_fork { File.write('trying', Process.pid.to_s); sleep }\n"
    asked = Thread.new { restart }
    eventually { File.exist?(File.join(@dir, "trying")) && !File.empty?(File.join(@dir, "trying")) }
    Process.kill("KILL", Integer(File.read(File.join(@dir, "trying"))))
    out, code = asked.value
    assert_equal 1, code
    assert_match(/a worker ended by signal 9 \(Killed\) before it was ready/, out)
    assert_equal before.sort, (processes(server, "mold") + workers(server)).sort
  end

  # The first new worker serves, the others cannot: the pool is left with what works of both.
  def test_a_release_whose_later_workers_fail_keeps_old_workers_and_says_so
    app VERSION
    write "VERSION", "1"
    config "start_timeout: 1s\nworkers: 2\n"
    server = start(*production)
    write "VERSION", "2"
    write "config/leat.rb", "after_fork { raise 'only one may' unless File.exist?('all') || (File.mkdir('one') rescue nil) }\n".sub("File.mkdir", "Dir.mkdir")
    out, code = with_witness(server, longest: 4) { restart }
    assert_equal 1, code
    assert_match(/only one may/, out)
    assert_match(/generation 2 serves/, out)
    assert_equal [1, 2], generations(server).sort
    write "all", ""
    eventually(40, "it heals") { generations(server) == [2, 2] && pool(server)["state"] == "up" }
  end

  # --- who asks

  def test_a_restart_during_a_restart_waits_for_one_that_began_after_it
    app "File.write('loading', ''); sleep 0.3\n#{VERSION}"
    write "VERSION", "1"
    server = start(*production("-w", "1"))
    File.delete(File.join(@dir, "loading"))
    first = Thread.new { restart }
    eventually { File.exist?(File.join(@dir, "loading")) }
    write "VERSION", "2"
    later = Array.new(3) { Thread.new { restart } }
    outcomes = [first, *later].map(&:value)
    assert_equal [0] * 4, outcomes.map(&:last), outcomes
    assert_match(/generation 2/, outcomes.first.first)
    outcomes.drop(1).each { |out, _| assert_match(/generation 3/, out) }
    assert_equal "2", get(server, "/").body
    assert_equal [3], generations(server)
  end

  def test_a_restart_of_nothing_starts_the_server_and_says_so
    app VERSION
    write "VERSION", "1"
    port = free_port
    out, code = leat("restart", "-e", "production", "-w", "1", "-p", port, "-P", pid_file)
    assert_equal 0, code, out
    assert_match(/not running; it is started/, out)
    assert_equal "1", Net::HTTP.get(URI("http://127.0.0.1:#{port}/"))
    assert_equal 0, leat("stop", "-P", pid_file).last
    app "raise 'no database'\n"
    out, code = leat("restart", "-e", "production", "-w", "1", "-p", port, "-P", pid_file)
    assert_equal 1, code
    assert_match(/no database/, out)
  ensure
    leat("stop", "--now", "-P", pid_file)
  end

  def test_a_pool_is_restarted_by_its_name
    app VERSION
    write "VERSION", "1"
    config "pools: {shop: {app: ., workers: 1}}\n"
    server = start(*production)
    out, code = restart("--pool", "shop")
    assert_equal [0, "pool shop restarted: generation 2, #{File.realpath(@dir)}\n"], [code, out]
    out, code = restart("--pool", "shoes")
    assert_equal 1, code
    assert_match(/no pool "shoes"; there are: shop/, out)
    assert_equal [2], generations(server)
  end

  def test_usr1_restarts_and_says_in_the_log_what_came_of_it
    app "#{VERSION}\nraise 'no database' if V == 'broken'\n"
    write "VERSION", "1"
    server = start(*production("-w", "1"))
    write "VERSION", "broken"
    Process.kill("USR1", server.pid)
    eventually { server.output.match?(/restart failed, the former release goes on: RuntimeError: no database \(.*config\.ru:2\)/) }
    write "VERSION", "2"
    Process.kill("USR1", server.pid)
    eventually { get(server, "/").body == "2" }
  end

  # A deploy may make the same release's marker older: only a change counts.
  def test_each_changed_time_of_the_marker_restarts_once
    app VERSION
    write "VERSION", "1"
    write "tmp/restart.txt", ""
    server = start(*production("-w", "1"))
    marker = File.join(@dir, "tmp/restart.txt")
    [Time.now - 1000, Time.now].each.with_index(2) do |time, generation|
      File.utime(time, time, marker)
      eventually(15, "generation #{generation}") { get(server, "/").code == "200" && generations(server) == [generation] }
    end
    limit = now + 5
    eventually(15) { get(server, "/").code == "200" && now > limit }
    assert_equal [3], generations(server)
  end

  # --- streams

  STREAM = <<~RUBY
    run(proc { |env|
      next [200, {}, [Process.pid.to_s]] unless env["PATH_INFO"] == "/events"
      body = Enumerator.new { |out| loop { out << "data: \#{Process.pid}\n\n"; sleep 0.05 } }
      [200, {"content-type" => "text/event-stream"}, body]
    })
  RUBY

  def stream(server)
    connect(server) do |socket|
      socket.write("GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
      yield socket, Integer(Timeout.timeout(10) { nil until (line = socket.gets).start_with?("data: ")
                                                  line[/\d+/] })
    end
  end

  def pids_of(socket, count)
    Timeout.timeout(10) { Array.new(count) { nil until (line = socket.gets).nil? || line.start_with?("data: "); line && line[/\d+/].to_i }.uniq }
  end

  def test_a_stream_lives_on_in_its_worker_until_stream_drain_is_over
    app STREAM
    config "timeouts: {stream_drain: 4s}\ntimeout: 1s\nworkers: 1\nthreads: 2\n"
    server = start(*production)
    stream(server) do |socket, old|
      restart!
      done = now
      assert_equal [old], pids_of(socket, 10)
      refute_equal old.to_s, get(server, "/").body
      eventually(20, "the old worker goes") { gone?(old) }
      assert_operator now - done, :>, 1
      Timeout.timeout(10) { nil while socket.gets }
    end
    eventually { server.output.include?("reason=normal generation=1") }
  end

  def test_restarts_go_on_while_streams_hold_old_workers
    app STREAM
    config "timeouts: {stream_drain: 60s}\nworkers: 1\nthreads: 2\n"
    server = start(*production)
    stream(server) do |first, old|
      restart!
      stream(server) do |second, newer|
        restart!
        assert_equal [[old], [newer]], [pids_of(first, 5), pids_of(second, 5)]
        refute_includes [old, newer].map(&:to_s), get(server, "/").body
        states = pool(server)["workers"].map { |worker| worker.values_at("generation", "state") }
        assert_equal [[1, "retiring"], [2, "retiring"], [3, "idle"]], states.sort
        assert_equal [File.realpath(@dir)] * 3, pool(server)["workers"].map { |worker| worker["release"] }
        assert_equal "up", pool(server)["state"]
      end
    end
    eventually { workers(server).size == 1 }
  end
end
