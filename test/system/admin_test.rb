# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require_relative "../open_metrics"

# The admin address: /live, /ready, /status.json and /metrics.
class AdminTest < ServerCase
  STATUS = %w[version pid uptime_s environment generation listeners connections requests pools].freeze
  POOL = %w[name kind state release ruby min max queue slots streams workers exits].freeze
  WORKER = %w[pid state generation requests busy threads age_s rss_bytes pss_bytes private_dirty_bytes current].freeze
  EXITS = %w[normal max_requests memory timeout idle crash killed].freeze
  FAMILIES = %w[leat_requests leat_request_seconds leat_queue_length leat_slots leat_workers leat_worker_exits
                leat_worker_memory_bytes leat_connections leat_refusals leat_bytes].freeze

  def start_with_admin(*options)
    @admin = free_port
    start("--admin", "127.0.0.1:#{@admin}", *options)
  end

  def admin(path, method: "GET")
    Net::HTTP.start("127.0.0.1", @admin, read_timeout: 20) { |client| client.send_request(method, path) }
  end

  def metrics
    reply = admin("/metrics")
    assert_equal "200", reply.code
    assert_equal "application/openmetrics-text; version=1.0.0; charset=utf-8", reply["content-type"]
    OpenMetrics.new(reply.body)
  end

  def admin_status = JSON.parse(admin("/status.json").body)

  def test_live_and_ready_and_nothing_else
    app 'run(proc { [200, {}, ["ok"]] })'
    server = start_with_admin
    assert_equal %w[200 200 404 405], [admin("/live"), admin("/ready"), admin("/x"), admin("/live", method: "POST")].map(&:code)
    assert_equal "", admin("/live", method: "HEAD").body.to_s
    assert_equal "200", get(server, "/live").code, "the application's own path on its own address"
  end

  def test_not_ready_while_nobody_can_serve
    app 'raise "broken" if File.exist?("broken"); run(proc { [200, {}, ["ok"]] })'
    config "workers: 1\npreload: false\n"
    server = start_with_admin("-e", "production")
    write("broken", "")
    Process.kill("KILL", workers(server).first)
    eventually(10, "it is not ready") { admin("/ready").code == "503" }
    assert_equal "200", admin("/live").code
  end

  def test_the_status_has_every_name_of_the_contract
    app 'run(proc { [200, {}, ["ok"]] })'
    server = start_with_admin
    3.times { get(server, "/") }
    eventually { admin_status["requests"]["total"] == 3 }
    seen = admin_status
    assert_empty STATUS - seen.keys
    assert_equal server.pid, seen["pid"]
    assert_equal %w[accepted idle open], seen["connections"].keys.sort
    assert_empty %w[total 2xx 3xx 4xx 5xx aborted] - seen["requests"].keys
    pool = seen["pools"].first
    assert_empty POOL - pool.keys
    assert_equal %w[length oldest_ms limit shed expired abandoned], pool["queue"].keys
    assert_equal EXITS, pool["exits"].keys
    assert_empty WORKER - pool["workers"].first.keys
  end

  def test_every_family_is_there_and_counts_survive_workers_and_restarts
    app 'run(proc { |env| [env["PATH_INFO"] == "/no" ? 404 : 200, {}, ["ok"]] })'
    server = start_with_admin
    5.times { get(server, "/") }
    get(server, "/no")
    Process.kill("KILL", workers(server).first)
    eventually(10, "the end is counted") { metrics.value("leat_worker_exits_total", reason: "killed") == 1 }
    eventually(10, "another one serves") { admin("/ready").code == "200" }
    assert_equal 0, leat("restart").last
    get(server, "/")
    eventually(10, "the former worker is gone") { metrics.value("leat_worker_exits_total", reason: "normal") == 1 }
    seen = eventually { metrics.then { |now| now if now.value("leat_requests_total", status: "2xx") == 6 } }
    assert_empty FAMILIES - seen.families.keys
    assert_equal EXITS, seen.families["leat_worker_exits"].samples.map { |sample| sample.labels["reason"] }
    assert_equal 1, seen.value("leat_requests_total", status: "4xx")
    assert_equal 7, seen.value("leat_request_seconds_count", stage: "total")
    assert_equal pool(server)["exits"], exits(seen)
  end

  def exits(seen) = seen.families["leat_worker_exits"].samples.to_h { |sample| [sample.labels["reason"], sample.value] }

  def test_refusals_connections_and_bytes_are_counted
    app 'run(proc { |env| env["rack.input"].read; [200, {}, ["x" * 1000]] })'
    server = start_with_admin
    http(server, "/", method: "POST", body: "y" * 500)
    raw(server, "GET / HTTP/1.1\r\n\r\n")
    connect(server) do
      seen = eventually { metrics.then { |now| now if now.value("leat_connections", state: "idle") == 1 } }
      assert_equal 0, seen.value("leat_connections", state: "busy")
      assert_equal 500, seen.value("leat_bytes_total", direction: "in")
      assert_operator seen.value("leat_bytes_total", direction: "out"), :>, 1000
      assert_equal 1, seen.value("leat_refusals_total", reason: "host")
    end
  end

  # Held by files of named pipes' kind: an application that waits for the test, not for a time.
  def test_saturation_is_visible_while_every_worker_hangs
    gate = File.join(@dir, "gate")
    File.mkfifo(gate)
    app "run(proc { File.read(#{gate.inspect}); [200, {}, ['ok']] })"
    config "workers: 1\nthreads: 1\n"
    server = start_with_admin
    clients = Array.new(4) { Thread.new { get(server, "/").code } }
    eventually(10, "one is served, three wait") { metrics.value("leat_queue_length") == 3 }
    assert_equal 1, metrics.value("leat_slots", state: "busy")
    assert_equal 1, metrics.value("leat_workers", state: "busy")
    assert_equal [3, 1], [admin_status, status(server)].map { |seen| seen["pools"].first }.flat_map { |pool| [pool["queue"]["length"], pool["slots"]["busy"]] }.uniq
    eventually(20, "all are answered") { File.open(gate, File::WRONLY | File::NONBLOCK, &:close) rescue nil; clients.none?(&:alive?) }
    assert_equal ["200"] * 4, clients.map(&:value)
    eventually { metrics.value("leat_request_seconds_count", stage: "queue") == 4 }
  end
end
