# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Applications that do everything wrong, each beside an honest one in a pool of its own: its own client sees
# an error at once, the honest application's clients notice nothing, the front goes on, nothing stays.
class HostileAppTest < ServerCase
  GOOD = 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["good"]] })'

  # The application of the pool `bad`, whose requests go through the block of the text by their path.
  def begin_server(text, pool: "", **options)
    app GOOD, path: "good/config.ru"
    app text, path: "bad/config.ru"
    config <<~YAML
      pools: {good: {app: good, workers: 1, threads: 1}, bad: {app: bad, workers: 2, threads: 2, timeout: 2s#{pool}}}
      sites: [{pool: good}, {host: bad, pool: bad}]
    YAML
    server = start("-e", "production", **options)
    eventually(20, "both serve") { status(server)["pools"].map { |pool| pool["workers"].map { |worker| worker["state"] } } == [["idle"], %w[idle idle]] }
    ask(server, "/")
    @before = look(server)
    server
  end

  def ask(server, path, method: "GET", body: nil)
    Net::HTTP.start("127.0.0.1", server.port, read_timeout: 40, max_retries: 0) do |client|
      client.send_request(method, path, body, "Host" => "bad").code
    end
  rescue EOFError, Errno::ECONNRESET, Net::HTTPBadResponse
    "cut"
  end

  # What must be as before: the front, the open files of master and front.
  def look(server)
    front = processes(server, "front")
    { front: front, files: [server.pid, *front].map { |pid| Dir.children("/proc/#{pid}/fd").size } }
  end

  def assert_unharmed(server)
    eventually(20, "it serves again") { Array.new(5) { ask(server, "/") }.uniq == ["200"] }
    eventually(10, "nothing is held") do
      status(server)["pools"].all? { |pool| pool["slots"]["busy"].zero? && pool["queue"]["length"].zero? && pool["state"] == "up" }
    end
    eventually(5, "no descriptor stays: #{@before} #{look(server)}") { look(server)[:files].zip(@before[:files]).all? { |after, before| after <= before } }
    assert_equal @before[:front], processes(server, "front"), "the front"
    assert_equal 0, status(server)["pools"].first["exits"].values.sum, "ends of honest workers"
    eventually(5) { children_of(server.pid).size == 6 } # front, two molds, three workers
  end

  # --- F16, F17: the shared memory

  MEMORY = <<~'RUBY'
    require "fiddle"
    BOARD = proc { File.readlines("/proc/self/maps").grep(/memfd:/).map { |line| line[/\A\h+-\h+/].split("-").map { |number| number.to_i(16) } } }
    ADVISE = Fiddle::Function.new(Fiddle::Handle::DEFAULT["madvise"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_INT], Fiddle::TYPE_INT)
    WRITE = proc { |at, bytes| Fiddle::Pointer.new(at)[0, bytes.bytesize] = bytes }
    run(proc { |env|
      first, last = BOARD.call.first
      random = Random.new(env["QUERY_STRING"].to_i)
      case env["PATH_INFO"]
      when "/few" then 20.times { WRITE.call(first + random.rand((last - first) / 8) * 8, random.bytes(8)) }
      when "/head" then 100.times { WRITE.call(first + 300 + random.rand(60_000) / 8 * 8, random.bytes(8)) }
      when "/many" then 5000.times { WRITE.call(first + 300 + random.rand((last - first - 300) / 8) * 8, random.bytes(8)) }
      when "/ones" then WRITE.call(first + 4096, "\xff".b * 200_000)
      when "/hole" then ADVISE.call(first, last - first, 9)
      when "/board" then next [200, {}, [first ? "mapped" : "none"]]
      end
      [200, {"content-type" => "text/plain"}, ["bad"]]
    })
  RUBY

  %w[few head many ones hole].each do |what|
    define_method("test_garbage_in_the_shared_memory_harms_its_own_pool_only_#{what}") do
      server = begin_server(MEMORY)
      with_witness(server) do
        3.times { |seed| Thread.new { ask(server, "/#{what}?#{seed}") }.join(5) }
      end
      assert_unharmed(server)
    end
  end

  # --- F19: children of the application

  def test_children_neither_answer_nor_hold_a_connection_or_a_worker
    server = begin_server(<<~'RUBY')
      run(proc { |env|
        case env["PATH_INFO"]
        when "/return" then next [200, {}, [fork ? "parent" : "child"]]
        when "/exit" then fork { exit 3 }
        when "/bang" then fork { exit! 3 }
        when "/raise" then fork { raise "in the child" }
        when "/exec" then fork { exec "true" }
        when "/write" then fork { env["rack.errors"].puts("child"); env["rack.input"].read; STDOUT.puts "child" }
        when "/daemon" then fork { Process.daemon(true, true); File.write("daemon", Process.pid.to_s); sleep 300 }
        when "/hold" then File.write("held", fork { sleep 300 }.to_s)
        when "/spawn" then File.write("spawned", Process.spawn("sleep", "300").to_s)
        end
        [200, {"content-type" => "text/plain"}, ["parent"]]
      })
    RUBY
    with_witness(server) do
      %w[/return /exit /bang /raise /exec /write /daemon /hold /spawn].each do |path|
        connect(server) do |socket|
          socket.write("GET #{path} HTTP/1.1\r\nHost: bad\r\nConnection: close\r\n\r\n")
          assert_equal "parent", read_reply(socket).body, path
          assert_equal "", Timeout.timeout(10) { socket.read }, "#{path}: one answer, and an end that is seen"
        end
      end
    end
    left = %w[daemon held spawned].map { |name| eventually { File.read(File.join(@dir, "bad", name))[/\d+/]&.to_i rescue nil } }
    before = status(server)["pools"].last["workers"].map { |worker| worker["pid"] }
    before.each { |pid| Process.kill("KILL", pid) }
    eventually(10, "replaced although children live") { (status(server)["pools"].last["workers"].map { |worker| worker["pid"] } & before).empty? }
    assert_equal 0, stop(server)
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", server.port) }
  ensure
    left&.each { |pid| Process.kill("KILL", pid) rescue nil }
  end

  # --- F20: ends of every kind

  ENDS = <<~'RUBY'
    require "timeout"
    run(proc { |env|
      case env["PATH_INFO"]
      when "/exit" then exit
      when "/bang" then exit!
      when "/abort" then abort "no more"
      when "/process-abort" then Process.abort
      when "/segv" then Process.kill("SEGV", Process.pid); sleep
      when "/kill" then Process.kill("KILL", Process.pid); sleep
      when "/term" then Process.kill("TERM", Process.pid); raise "after it"
      when "/exception" then raise Exception, "all of it"
      when "/interrupt" then raise Interrupt
      when "/signal" then raise SignalException, "HUP"
      when "/throw" then throw :nothing
      when "/thread" then Thread.current.kill
      when "/threads" then (Thread.list - [Thread.current]).each(&:kill); raise "alone"
      when "/main" then Thread.main.raise("for you"); raise "after it"
      when "/main-kill" then Thread.main.kill; sleep
      when "/deep" then (f = proc { f.call }).call
      when "/memory" then raise NoMemoryError
      when "/string" then "x" * (1 << 62)
      when "/timeout" then Timeout.timeout(0.01) { sleep }
      when "/frozen" then env.freeze; raise "frozen"
      when "/message" then raise Class.new(StandardError) { def message = raise("in message") }
      when "/exec" then exec "true"
      end
      [200, {"content-type" => "text/plain"}, ["bad"]]
    })
  RUBY

  def test_whatever_ends_a_request_its_client_is_told_at_once
    server = begin_server(ENDS)
    paths = ENDS.scan(%r{when "(/\S+)"}).flatten
    with_witness(server) do
      paths.each do |path|
        begun = now
        code = Timeout.timeout(15) { ask(server, path, method: "POST", body: "x") }
        assert_includes %w[500 502], code, path
        assert_operator now - begun, :<, 5, path
        eventually(10, "served after #{path}") { ask(server, "/") == "200" }
        eventually(35, "two workers after #{path}") { status(server)["pools"].last["workers"].count { |worker| %w[idle busy].include?(worker["state"]) } == 2 }
      end
    end
    assert_unharmed(server)
  end

  # --- F21: descriptors and the process's own things

  PROCESS = <<~'RUBY'
    run(proc { |env|
      case env["PATH_INFO"]
      when "/close" then (3..400).each { |number| IO.for_fd(number, autoclose: false).close rescue nil }
      when "/over" then file = File.open("/dev/null"); (3..60).each { |number| IO.for_fd(number, autoclose: false).reopen(file) rescue nil }
      when "/leak" then LEAKED = []; loop { LEAKED << File.open("/dev/null") } rescue nil
      when "/out" then $stdout.close; $stderr.close; STDOUT.close rescue nil
      when "/folder" then Dir.chdir("/")
      when "/umask" then File.umask(0o777)
      when "/traps" then Signal.list.each_key { |name| trap(name, "IGNORE") rescue nil }
      when "/locale" then Encoding.default_external = "UTF-16LE" rescue nil; ENV.clear
      when "/name" then $0 = "x" * 5000; Process.setproctitle("leat: front")
      when "/user" then Process::Sys.setuid(65_534) if Process.uid.zero?
      when "/raise" then raise "to standard error"
      end
      [200, {"content-type" => "text/plain"}, ["bad"]]
    })
  RUBY

  def test_a_worker_that_spoils_its_process_is_no_trouble_to_others
    server = begin_server(PROCESS)
    with_witness(server) do
      PROCESS.scan(%r{when "(/\S+)"}).flatten.each do |path|
        code = Timeout.timeout(20) { ask(server, path, method: "POST", body: "x") }
        assert_includes %w[200 500 502 504 cut], code, path
        assert_includes %w[500 502], Timeout.timeout(20) { ask(server, "/raise") }, "after #{path}" if path == "/out"
        eventually(20, "served after #{path}") { Array.new(4) { ask(server, "/") }.uniq == ["200"] }
      end
      100.times { |index| assert_equal "200", http(server, "/", method: "POST", headers: { "Host" => "bad" }, body: "x" * index * 1000).code }
    end
    assert_equal 0, stop(server)
  end

  # --- F22: bodies

  BODIES = <<~'RUBY'
    Body = Struct.new(:block) do
      def each(&each) = block.call(each)
      def close = File.write("closed", "x", mode: "a")
    end
    run(proc { |env|
      text = {"content-type" => "text/plain"}
      body = case env["PATH_INFO"]
             when "/never" then Body.new(proc { sleep })
             when "/nothing" then Body.new(proc { |yielder| loop { yielder.call("") } })
             when "/wrong" then Body.new(proc { |yielder| yielder.call("a"); yielder.call(nil); yielder.call(7) })
             when "/raise" then Body.new(proc { |yielder| yielder.call("a"); raise "in each" })
             when "/huge" then Body.new(proc { |yielder| 3.times { yielder.call("x" * 30_000_000) } })
             when "/twice" then Body.new(proc { |yielder| 2.times { Thread.new { yielder.call("t") }.join } })
             when "/path" then Body.new(proc { |yielder| yielder.call("from each") }).tap { |b| def b.to_path = "/nowhere/at/all" }
             when "/device" then Body.new(proc { |yielder| yielder.call("from each") }).tap { |b| def b.to_path = "/dev/zero" }
             when "/hijack" then io = env["rack.hijack"].call; io.write("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nraw"); io.close; Body.new(proc { |yielder| yielder.call("late") })
             else next [200, text, ["bad"]]
             end
      [200, text, body]
    })
  RUBY

  def test_bodies_that_never_end_raise_or_lie_are_visible_and_closed_once
    server = begin_server(BODIES)
    outcomes = { "/never" => "504", "/wrong" => "cut", "/raise" => "cut", "/huge" => "200", "/path" => "200", "/device" => "200", "/hijack" => "200" }
    with_witness(server) do
      outcomes.each do |path, code|
        File.write(File.join(@dir, "bad/closed"), "")
        assert_equal code, Timeout.timeout(20) { ask(server, path) }, path
        eventually(5, "#{path} is closed") { File.size(File.join(@dir, "bad/closed")) == 1 } unless path == "/never"
        assert_equal 1, File.size(File.join(@dir, "bad/closed")), path unless path == "/never"
      end
      %w[/nothing /twice].each { |path| assert_includes %w[200 504 cut 500], Timeout.timeout(20) { ask(server, path) }, path }
    end
    assert_unharmed(server)
  end

  # --- F24: applications that load now and then

  def test_an_application_of_which_every_second_worker_loads_serves
    app GOOD, path: "good/config.ru"
    app <<~'RUBY', path: "bad/config.ru"
      tries = (File.read("tries").to_i rescue 0) + 1
      File.write("tries", tries.to_s)
      raise "not this time" if tries.even?
      run(proc { |env| exit!(1) if env["PATH_INFO"] == "/die"; [200, {"content-type" => "text/plain"}, ["bad"]] })
    RUBY
    config <<~YAML
      pools: {good: {app: good, workers: 1}, bad: {app: bad, workers: 1, threads: 1, preload: false}}
      sites: [{pool: good}, {host: bad, pool: bad}]
    YAML
    server = start("-e", "production")
    with_witness(server) do
      4.times do
        assert_equal "502", ask(server, "/die", method: "POST", body: "")
        eventually(30, "it heals") { ask(server, "/") == "200" }
      end
    end
    assert_match(/not this time/, server.output)
    assert_equal 0, stop(server)
  end
end
