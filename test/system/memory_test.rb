# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# What applications may take of memory, and who gives way when it is short.
class MemoryTest < ServerCase
  # Takes so many megabytes for good when it is asked to.
  HUNGRY = <<~'RUBY'
    kept = []
    run(proc { |env|
      mb = env["QUERY_STRING"].to_i
      kept << Random.bytes(mb << 20) if mb.positive?
      [200, {"content-type" => "text/plain"}, [Process.pid.to_s]]
    })
  RUBY

  # Private memory of the server's Ruby processes, as the system counts it.
  def private_mb(server)
    (processes(server, "mold") + workers(server)).sum { |pid| kb_of(pid, /^Private_\w+:\s*(\d+) kB/) } / 1024
  end

  def proportional_mb(server)
    (processes(server, "mold") + workers(server)).sum { |pid| kb_of(pid, /^Pss:\s*(\d+) kB/) } / 1024
  end

  def kb_of(pid, pattern)
    File.read("/proc/#{pid}/smaps_rollup").scan(pattern).flatten.sum(&:to_i)
  rescue Errno::ENOENT, Errno::ESRCH
    0
  end

  # The most that the Ruby processes take while the block runs, shared pages counted once.
  def highest_of(server)
    over, block_is_over = IO.pipe
    highest = 0
    gauge = Thread.new { highest = [highest, proportional_mb(server)].max until over.wait_readable(0.1) }
    yield
    block_is_over.close
    gauge.join
    highest
  end

  # --- many applications, little memory

  def test_twenty_applications_of_60_mb_share_256_mb
    names = Array.new(20) { |number| "app#{number}" }
    names.each { |name| app "DATA = \"x\" * (60 << 20)\nrun(proc { |env| [200, {}, [\"#{name} \#{DATA.bytesize >> 20}\"]] })", path: "#{name}/config.ru" }
    config <<~YAML
      memory_total: 256m
      pool_defaults: {workers: 0..1, threads: 1, queue: {timeout: 2m}}
      pools: {#{names.map { |name| "#{name}: {app: #{name}}" }.join(", ")}}
      sites: [#{names.map { |name| "{host: #{name}, pool: #{name}}" }.join(", ")}]
    YAML
    server = start("-e", "production")
    highest = highest_of(server) do
      2.times { ask_all(server, names) }
    end
    assert_operator highest, :<=, 256
    assert_operator highest, :>=, 130, "two at a time fit"
    assert_empty status(server)["pools"].flat_map { |pool| pool["exits"].except("idle", "memory").values } - [0]
  end

  # All at once, in any order.
  def ask_all(server, names)
    answers = names.shuffle.to_h { |name| [name, Thread.new { patient(server, name) }] }
    answers.each { |name, answer| assert_equal [200, "#{name} 60"], answer.value }
  end

  # A client that waits as long as it takes.
  def patient(server, host, path = "/")
    connect(server) do |socket|
      socket.write("GET #{path} HTTP/1.1\r\nHost: #{host}\r\n\r\n")
      read_reply(socket, seconds: 150).then { |reply| [reply.status, reply.body] }
    end
  end

  # --- limits of one pool

  def test_a_worker_over_its_memory_is_replaced_and_nobody_notices
    app HUNGRY
    config "workers: 1\nmemory: 80m\n"
    server = start("-e", "production")
    first = workers(server)
    with_witness(server, longest: 5.0) do
      assert_equal first.first.to_s, get(server, "/?100").body
      eventually(20, "it is replaced") { pool(server)["exits"]["memory"] == 1 && workers(server) != first }
    end
    assert_equal 1, workers(server).size
    assert_match(/worker #{first.first} takes 1\d\d MB of private memory, more than memory \(80 MB\); it is replaced/, server.output)
    assert_match(/worker #{first.first} ended: reason=memory /, server.output)
  end

  def test_where_two_workers_do_not_fit_the_old_one_goes_first_and_requests_wait
    app HUNGRY
    config "workers: 1\nmemory: 80m\nmemory_total: 150m\n"
    server = start("-e", "production")
    first = workers(server)
    get(server, "/?100")
    eventually(20, "it is replaced") { pool(server)["exits"]["memory"] == 1 }
    refute_equal first.first.to_s, get(server, "/").body
    assert_match(/worker #{first.first} is replaced \(memory\) and two do not fit into memory: the old one goes first/, server.output)
    eventually(10, "the new one came after the old one had gone") do
      server.output.rindex("serves:") > server.output.rindex("ended: reason=memory")
    end
  end

  HELD = <<~'RUBY'
    kept = []
    run(proc { |env|
      kept << "x" * (50 << 20) if kept.empty?
      sleep 0.02 until File.exist?("open")
      [200, {"content-type" => "text/plain"}, ["ok"]]
    })
  RUBY

  def learn_size(server)
    write "open", ""
    assert_equal [200, "ok"], patient(server, "a")
    eventually(20, "its size is known") { pool(server)["workers"].first["private_dirty_bytes"] > 50 << 20 }
    File.delete(File.join(@dir, "open"))
  end

  def test_memory_total_bounds_the_workers_by_what_they_take
    app HELD
    config "pools: {shop: {app: ., workers: 1..6, threads: 1, idle: 1s, memory_total: 220m}}\n"
    server = start("-e", "production")
    learn_size(server)
    held = Array.new(8) { Thread.new { patient(server, "a") } }
    eventually(20, "it says why there are no more") { server.output.include?("another worker") }
    assert_includes 2..4, workers(server).size
    assert_match(/does not fit: memory_total of the pool/, server.output)
    assert_operator private_mb(server), :<=, 240
    write "open", ""
    assert_equal [[200, "ok"]] * 8, held.map(&:value)
    eventually(20, "one is left") { workers(server).size == 1 }
  end

  def test_a_pool_that_comes_late_gets_its_worker_although_others_are_busy_all_the_time
    names = %w[a b c]
    names.each { |name| app "DATA = 'x' * (60 << 20)\nrun(proc { |env| sleep 0.05; [200, {}, ['#{name}']] })", path: "#{name}/config.ru" }
    config <<~YAML
      memory_total: 190m
      pool_defaults: {workers: 0..1, threads: 1, queue: {timeout: 2m}}
      pools: {#{names.map { |name| "#{name}: {app: #{name}}" }.join(", ")}}
      sites: [#{names.map { |name| "{host: #{name}, pool: #{name}}" }.join(", ")}]
    YAML
    server = start("-e", "production")
    over = false
    busy = %w[a b].flat_map { |name| Array.new(2) { Thread.new { (answers ||= []) << patient(server, name) until over; answers.uniq } } }
    eventually(60, "two are up") { status(server)["pools"].count { |pool| pool["state"] == "up" } == 2 }
    3.times { assert_equal [200, "c"], patient(server, "c") }
    over = true
    assert_equal [[[200, "a"]]] * 2 + [[[200, "b"]]] * 2, busy.map(&:value)
  end

  # --- the kernel's limits

  GROUPS = "/sys/fs/cgroup/memory"

  # A group of version 1 that a command runs in.
  def self.makes_groups?
    return false unless root?

    folder = "#{GROUPS}/leat-test-#{Process.pid}"
    Dir.mkdir(folder)
    File.write("#{folder}/memory.limit_in_bytes", "64m")
    Dir.rmdir(folder)
    true
  rescue SystemCallError
    false
  end

  where(makes_groups?, "a memory control group of version 1") do
    def in_group(limit)
      folder = "#{GROUPS}/leat-test-#{Process.pid}-#{rand(1 << 30)}"
      Dir.mkdir(folder)
      File.write("#{folder}/memory.limit_in_bytes", limit)
      # What is written by whoever reads, so that the server itself stands in the group.
      @group = write("leat-in-group", "#!/bin/sh\necho $$ > #{folder}/cgroup.procs\nexec #{BINARY} \"$@\"\n")
      File.chmod(0o755, @group)
      yield folder
    ensure
      @servers.each { |server| end_process(server.pid) }
      eventually(20, "the group is empty") { File.read("#{folder}/cgroup.procs").empty? }
      Dir.rmdir(folder)
    end

    def binary = @group || BINARY

    def test_the_number_of_workers_follows_the_limit_of_the_control_group
      app "DATA = 'x' * (40 << 20)\nrun(proc { |env| [200, {}, ['ok']] })"
      in_group("200m") do
        server = start("-e", "production", "-w", "auto")
        assert_equal "200", get(server, "/").code
        assert_match(/workers auto: \d+ by processors \(affinity \d+, [^)]+\), [12] by memory \(\d+ MB free in the control group, \d+ MB each/, server.output)
      end
    end

    def test_a_growing_pool_stays_within_the_control_group
      app HELD
      config "workers: 1..8\nthreads: 1\n"
      in_group("400m") do |folder|
        server = start("-e", "production")
        learn_size(server)
        held = Array.new(12) { Thread.new { patient(server, "a") } }
        eventually(30, "it says why there are no more") { server.output.include?("another worker") }
        write "open", ""
        assert_equal [[200, "ok"]] * 12, held.map(&:value)
        assert_match(/oom_kill 0$/, File.read("#{folder}/memory.oom_control")) if File.read("#{folder}/memory.oom_control").include?("oom_kill ")
        assert_equal 0, pool(server)["exits"]["killed"]
      end
    end

    def test_a_worker_that_the_kernel_kills_for_its_memory_is_named_and_replaced
      app HUNGRY
      config "workers: 1\n"
      in_group("200m") do
        server = start("-e", "production")
        assert_includes %w[502 503], get(server, "/?900").code
        assert_equal "200", get(server, "/").code
        assert_match(/reason=killed .*the kernel was out of memory.*limit of 200 MB/, server.output)
      end
    end
  end
end
