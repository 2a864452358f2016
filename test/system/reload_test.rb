# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Reading the configuration again while the server runs: what has changed is exchanged, what has not goes on,
# nobody loses a request or a stream, and what is wrong changes nothing.
class ReloadTest < ServerCase
  APP = <<~RUBY
    run(proc do |env|
      case env["PATH_INFO"]
      when "/slow" then sleep 1.5; [200, {}, ["slow"]]
      when "/stream"
        stop = File.join(__dir__, "stop")
        body = Enumerator.new { |out| n = 0; (out << "\#{n += 1}\\n"; sleep 0.05) until File.exist?(stop); out << "end\\n" }
        [200, {"content-type" => "text/event-stream"}, body]
      else [200, {"content-type" => "text/plain"}, ["\#{ENV["NAME"]} \#{Process.pid}"]]
      end
    end)
  RUBY

  def setup
    super
    app APP
  end

  def begin_server(yaml, *options, **more)
    config yaml
    start("-e", "production", *options, **more)
  end

  def reload(server, yaml = nil, code: 0)
    config yaml if yaml
    out, status = leat("reload", *control(server))
    assert_equal code, status, out
    out
  end

  def control(server) = ["--control", File.join(@dir, "control")].then { |argument| File.socket?(argument.last) ? argument : [] }

  def fronts(server) = processes(server, "front")

  def molds(server) = processes(server, "mold")

  def generation(server) = status(server)["generation"]

  def descriptors(pid) = Dir.children("/proc/#{pid}/fd").size

  def body(port, host: "localhost") = Net::HTTP.start("127.0.0.1", port) { |http| http.get("/", "host" => host).body }

  def listening(*ports) = "workers: 1\nlisten: [#{ports.map { |port| "'127.0.0.1:#{port}'" }.join(", ")}]\n"

  # Former fronts and workers have gone.
  def settle(server)
    eventually(20, "former processes end") { fronts(server).size == 1 && status(server)["pools"].all? { |pool| pool["state"] == "up" && pool["workers"].none? { |worker| worker["state"] == "retiring" } } }
  end

  # --- what stays

  def test_processes_that_serve_the_same_go_on
    server = begin_server("workers: 2\ntimeout: 10s\n")
    eventually { workers(server).size == 2 }
    before = [workers(server).sort, molds(server)]
    former = fronts(server)
    assert_equal 1, generation(server)
    assert_match(/reloaded: generation 2/, reload(server, "workers: 2\ntimeout: 20s\nqueue: {timeout: 1s}\nlimits: {body: 1k}\n"))
    settle server
    assert_equal before, [workers(server).sort, molds(server)]
    refute_equal former, fronts(server)
    assert_equal 2, generation(server)
    assert_equal "413", http(server, "/", method: "POST", body: "x" * 2000).code
    assert_equal 0, stop(server)
  end

  def test_hup_reads_the_configuration_and_opens_logs_anew
    server = begin_server("access_log: access.log\n")
    assert_equal "200", get(server, "/").code
    log = File.join(@dir, "access.log")
    eventually { File.size(log).positive? }
    File.rename(log, "#{log}.1")
    config "access_log: access.log\npulse: /up\n"
    Process.kill("HUP", server.pid)
    eventually { generation(server) == 2 }
    assert_equal "OK", get(server, "/up").body
    eventually { File.exist?(log) && File.read(log).include?("/up") }
  end

  def test_options_and_environment_of_the_start_count_again
    server = begin_server("workers: 1\nenv: {NAME: '${SHOWN}'}\n", "-w", "2", env: { "SHOWN" => "shown" })
    reload(server, "workers: 1\nthreads: 2\nenv: {NAME: '${SHOWN}2'}\n")
    settle server
    assert_equal ["shown2", 2], [get(server, "/").body.split.first, workers(server).size]
  end

  def test_what_cannot_change_is_said_in_a_line
    server = begin_server("pid: one.pid\n")
    out = reload(server, "pid: two.pid\nuser: nobody\nthreads: 2\n")
    assert_match(/^user, pid: a running server keeps it/, out)
    assert_path_exists File.join(@dir, "one.pid")
    refute_path_exists File.join(@dir, "two.pid")
  end

  # --- what is wrong

  def test_a_broken_file_changes_nothing_and_every_mistake_is_told
    server = begin_server("workers: 1\n")
    before = [workers(server), fronts(server), descriptors(server.pid)]
    out = reload(server, "workers: many\nlissten: 80\n", code: 1)
    assert_match(/leat\.yml:1:10: workers: /, out)
    assert_match(/leat\.yml:2:1: lissten: unknown key/, out)
    assert_match(/nothing has changed/, out)
    assert_equal [before, 1], [[workers(server), fronts(server), descriptors(server.pid)], generation(server)]
    assert_match(/error reload: leat\.yml:2:1/, server.output)
    assert_equal "200", get(server, "/").code
    reload(server, "workers: 1\n")
  end

  def test_a_port_that_is_taken_changes_nothing
    port, fresh = free_port, free_port
    other = TCPServer.new("127.0.0.1", 0)
    taken = other.addr[1]
    server = begin_server(listening(port), :no_port)
    before = descriptors(server.pid)
    out = reload(server, listening(port, fresh, taken), code: 1)
    assert_match(/cannot listen on 127\.0\.0\.1:#{taken}/, out)
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", fresh) }
    assert_equal before, descriptors(server.pid)
  ensure
    other&.close
  end

  def test_a_changed_pool_that_does_not_load_is_undone
    server = begin_server("workers: 2\nenv: {NAME: one}\n")
    eventually { workers(server).size == 2 }
    before = workers(server).sort
    open = descriptors(server.pid)
    app "raise 'no database' if ENV['NAME'] == 'two'\n#{APP}"
    out = reload(server, "workers: 2\nenv: {NAME: two}\n", code: 1)
    assert_match(/RuntimeError: no database \(.*config\.ru:1\)/, out)
    assert_match(/nothing has changed/, out)
    eventually { children_of(server.pid).size == 4 && descriptors(server.pid) == open }
    assert_equal before, workers(server).sort
    assert_equal "one", get(server, "/").body.split.first
    assert_equal 1, generation(server)
  end

  # --- sockets

  def test_listeners_come_and_go_and_the_others_keep_theirs
    kept, gone, fresh = free_port, free_port, free_port
    server = begin_server(listening(kept, gone), :no_port)
    before = descriptors(server.pid)
    socket = ["unix:#{File.join(@dir, "new.sock")}", "'127.0.0.1:#{fresh}'"].join(", ")
    reload(server, listening(kept).sub("]", ", #{socket}]"))
    assert_equal "200", Net::HTTP.get_response("127.0.0.1", "/", fresh).code
    assert_equal "200", Net::HTTP.get_response("127.0.0.1", "/", kept).code
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", gone) }
    assert File.socket?(File.join(@dir, "new.sock"))
    assert_equal ["127.0.0.1:#{kept}", "unix:#{File.join(@dir, "new.sock")}", "127.0.0.1:#{fresh}"], status(server)["listeners"].map { |listener| listener["address"] }
    reload(server, listening(gone, kept))
    refute_path_exists File.join(@dir, "new.sock")
    assert_equal "200", Net::HTTP.get_response("127.0.0.1", "/", gone).code
    eventually { fronts(server).size == 1 && descriptors(server.pid) == before }
  end

  def test_what_waits_at_a_removed_listener_is_answered
    kept, gone = free_port, free_port
    server = begin_server(listening(kept, gone), :no_port)
    former = fronts(server).first
    Process.kill("STOP", former)
    waiting = Array.new(40) { TCPSocket.new("127.0.0.1", gone).tap { |socket| socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n") } }
    config listening(kept)
    asked = Thread.new { leat("reload") }
    eventually { fronts(server).size == 2 }
    refused = eventually { generation(server) == 2 } && Array.new(3) { Socket.tcp("127.0.0.1", gone, connect_timeout: 0.2) { |socket| socket.wait_readable(0) } rescue :refused }
    Process.kill("CONT", former)
    assert_equal 0, asked.value.last, asked.value.first
    waiting.each do |socket|
      reply = read_reply(socket)
      assert_equal [200, "close"], [reply.status, reply.headers["connection"]]
    end
    assert_equal [:refused] * 3, refused
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", gone) }
  ensure
    waiting&.each(&:close)
  end

  # --- connections

  def test_idle_connections_are_answered_once_more_and_told_to_leave
    server = begin_server("workers: 1\n")
    connect(server) do |socket|
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal 200, read_reply(socket).status
      reload(server)
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      reply = read_reply(socket)
      assert_equal [200, "close"], [reply.status, reply.headers["connection"]]
      assert_nil socket.read(1)
    end
  end

  def test_streams_and_slow_answers_outlive_a_changed_pool
    server = begin_server("workers: 1\nenv: {NAME: one}\n")
    stream = TCPSocket.new("127.0.0.1", server.port)
    stream.write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
    eventually { stream.gets == "1\n" }
    slow = Thread.new { get(server, "/slow").body }
    eventually { pool(server)["slots"]["busy"] >= 2 }
    former = workers(server)
    reload(server, "workers: 1\nenv: {NAME: two}\n")
    assert_equal "two", get(server, "/").body.split.first
    assert_equal "slow", slow.value
    refute(former.any? { |pid| gone?(pid) }, "the stream's worker lives")
    write "stop", ""
    numbers = stream.read.scan(/^\d+$/).map(&:to_i)
    assert_equal (2..numbers.last).to_a, numbers - [1], "no part is missing"
    settle server
    assert(former.all? { |pid| gone?(pid) })
  ensure
    stream&.close
  end

  def test_when_every_place_is_taken_the_oldest_front_ends_its_streams
    server = begin_server("workers: 1\nthreads: 16\n")
    streams = Array.new(8) do
      TCPSocket.new("127.0.0.1", server.port).tap do |socket|
        socket.write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually { socket.gets == "1\n" }
        reload(server)
      end
    end
    assert_match(/all 8 places for fronts are taken; the oldest, \d+, ends its 1 stream/, server.output)
    Timeout.timeout(10) { streams.shift.read }
    streams.each { |socket| eventually { socket.readpartial(100_000).match?(/\d\n/) } }
    assert_equal 8, fronts(server).size
    write "stop", ""
    streams.each { |socket| assert_includes socket.read, "end\n" }
    settle server
  ensure
    streams&.each(&:close)
  end

  # --- pools and sites

  def test_pools_and_sites_come_go_and_change_their_order
    app APP.sub('ENV["NAME"]', '"blog"'), path: "blog/config.ru"
    app APP.sub('ENV["NAME"]', '"shop"'), path: "shop/config.ru"
    one = "pools: {shop: {app: shop, workers: 1}}\nsites: [{host: shop.test, pool: shop}]\n"
    two = "pools: {blog: {app: blog, workers: 1}, shop: {app: shop, workers: 1}}\nsites: [{host: blog.test, pool: blog}, {host: shop.test, pool: shop}]\n"
    server = begin_server(one)
    worker = body(server.port, host: "shop.test")
    before = descriptors(server.pid)
    reload(server, two)
    assert_equal "blog", body(server.port, host: "blog.test").split.first
    assert_equal worker, body(server.port, host: "shop.test"), "the same process"
    assert_equal %w[blog shop], status(server)["pools"].map { |pool| pool["name"] }
    reload(server, one)
    assert_equal "404", Net::HTTP.start("127.0.0.1", server.port) { |http| http.get("/", "host" => "blog.test").code }
    assert_equal worker, body(server.port, host: "shop.test")
    eventually { workers(server).size == 1 && molds(server).size == 1 && descriptors(server.pid) == before }
  end

  def test_a_changed_pool_s_workers_are_numbered_on_and_its_ends_counted_on
    server = begin_server("workers: 1\nenv: {NAME: one}\n")
    reload(server, "workers: 1\nenv: {NAME: two}\n")
    eventually(15) { workers(server).size == 1 && pool(server)["exits"]["normal"] == 1 }
    assert_equal 2, pool(server)["workers"].first["generation"]
    assert_equal "200", get(server, "/").code
    assert_equal 0, leat("restart").last
    assert_equal 3, pool(server)["workers"].map { |worker| worker["generation"] }.max
  end

  # --- at the same time as other things

  def test_many_reloads_under_load_lose_nothing
    server = begin_server("workers: 2\nthreads: 2\n", "-P", "leat.pid")
    eventually { workers(server).size == 2 }
    before = descriptors(server.pid)
    stream = TCPSocket.new("127.0.0.1", server.port)
    stream.write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
    eventually { stream.gets == "1\n" }
    finish = false
    clients = Array.new(6) { |index| Thread.new { ask_until(server, keep: index.even?) { finish } } }
    outcomes = Array.new(4) do |index|
      Thread.new do
        Array.new(6) do |round|
          replace_config "workers: 2\nthreads: 2\ntimeout: #{10 + index + 10 * round}s\n"
          leat("reload", "-P", "leat.pid").last
        end
      end
    end.flat_map(&:value)
    finish = true
    losses = clients.flat_map { |client| client.value[:lost] }
    assert_equal [0] * 24, outcomes
    assert_equal [], losses
    assert_operator clients.sum { |client| client.value[:answers] }, :>, 50
    eventually { stream.readpartial(100_000).match?(/\d\n/) }
    write "stop", ""
    assert_includes stream.read, "end\n"
    settle server
    eventually { descriptors(server.pid) == before }
    assert_equal 4, children_of(server.pid).size, "a front, a mold and two workers"
  ensure
    stream&.close
  end

  # Whole at every moment, while others load it.
  def replace_config(yaml)
    fresh = write("leat.yml.#{Thread.current.object_id}", yaml)
    File.rename(fresh, File.join(@dir, "leat.yml"))
  end

  # One client that asks until the block is true: what it lost.
  def ask_until(server, keep:)
    lost, answers = [], 0
    until yield
      begin
        connect(server) do |socket|
          loop do
            socket.write("GET / HTTP/1.1\r\nHost: a\r\n#{"Connection: close\r\n" unless keep}\r\n")
            reply = read_reply(socket)
            reply.status == 200 ? answers += 1 : lost << reply.status
            break if reply.headers["connection"] == "close" || yield
          end
        end
      rescue StandardError => error
        lost << "#{error.class}: #{error.message}"
      end
    end
    { lost: lost, answers: answers }
  end

  def test_one_asked_for_during_the_start_comes_after_it
    app "sleep 0.5\n#{APP}"
    config "workers: 1\npid: leat.pid\n"
    server = start("-e", "production", wait: false)
    out, code = eventually { leat("reload", "-P", "leat.pid").then { |answer| answer unless answer.first.include?("not running") } }
    assert_equal [0, "reloaded: generation 2\n"], [code, out]
    assert_equal "200", get(server, "/").code
  end

  def test_a_stop_ends_the_reload_under_way
    server = begin_server("workers: 1\npid: leat.pid\n")
    app "sleep 20\n#{APP}"
    config "workers: 1\npid: leat.pid\nenv: {A: b}\n"
    asked = Thread.new { leat("reload", "-P", "leat.pid") }
    eventually { molds(server).size == 2 || children_of(server.pid).size > 3 }
    assert_equal 0, stop(server)
    assert_equal 1, asked.value.last
    assert_match(/stopped meanwhile/, asked.value.first)
  end

  def test_a_front_that_dies_meanwhile_is_put_back
    server = begin_server("workers: 1\npid: leat.pid\n")
    app "sleep 1\n#{APP}"
    config "workers: 1\npid: leat.pid\nenv: {NAME: new}\n"
    asked = Thread.new { leat("reload", "-P", "leat.pid") }
    eventually { children_of(server.pid).size > 3 }
    Process.kill("KILL", fronts(server).first)
    assert_equal 0, asked.value.last, asked.value.first
    assert_equal "new", get(server, "/").body.split.first
    settle server
  end

  def test_without_a_server_it_fails
    out, code = leat("reload")
    assert_equal 1, code
    assert_match(/not running/, out)
  end
end
