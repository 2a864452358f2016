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
    names.each { |name| app "DATA = Random.bytes(60 << 20)\nrun(proc { |env| [200, {}, [\"#{name} \#{DATA.bytesize >> 20}\"]] })", path: "#{name}/config.ru" }
    config <<~YAML
      memory_total: 256m
      pool_defaults: {workers: 0..1, threads: 1, queue: {timeout: 60s}}
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
    answers = names.shuffle.to_h { |name| [name, Thread.new { get(server, "/", "Host" => name).then { |reply| [reply.code, reply.body] } }] }
    answers.each { |name, answer| assert_equal ["200", "#{name} 60"], answer.value }
  end
end
