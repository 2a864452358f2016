# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What is measured, and what is expected of it. A workload's load is given the running peer and the
# seconds of a run; its goals are sentences with a test over {peer => medians}.

require_relative "load"

Goal = Struct.new(:words, :met)

Workload = Struct.new(:name, :words, :app, :peers, :threads, :base, :load, :goals, keyword_init: true)

module Workloads
  CLIENTS = 50
  WORKERS = 2
  MIXED_MEAN_S = 0.02 * 0.1 + 0.98 * 0.001
  CPU_MS = 2.0

  module_function

  # leat's requests per second are at least factor times the peer's.
  def at_least(factor, peer)
    Goal.new("at least #{factor} × #{peer}", ->(found) { found["leat"]["rps"] >= factor * found[peer]["rps"] })
  end

  def ahead_of(peer) = at_least(1.0, peer)

  # Machines as noisy as these differ by that much from start to start.
  def not_behind(peer)
    Goal.new("not behind #{peer} (noise: 20 %)", ->(found) { found["leat"]["rps"] >= 0.8 * found[peer]["rps"] })
  end

  def wrk(path, connections: CLIENTS, **more)
    ->(peer, seconds) { Load.wrk(peer, path, connections: connections, seconds: seconds, **more) }
  end

  def ab(path, requests)
    ->(peer, _seconds) { Load.ab(peer, path, requests: requests, connections: CLIENTS) }
  end

  P99_BELOW_UNICORN = Goal.new("p99 below unicorn's", ->(found) { found["leat"]["p99"] <= found["unicorn"]["p99"] })

  LIST = [
    Workload.new(
      name: "pulse-ka", words: "2 bytes from the application, keep-alive, c = 50", app: :mix, threads: 5, base: "puma",
      peers: %w[leat puma iodine unicorn agoo nginx+puma], load: wrk("/pulse"), goals: [at_least(4, "puma"), ahead_of("iodine")]
    ),
    Workload.new(
      name: "pulse-ab", words: "the same with a connection for each request (ab -n 5000 -c 50)", app: :mix, threads: 5, base: "puma",
      peers: %w[leat puma iodine unicorn agoo nginx+puma], load: ab("/pulse", 5000), goals: [at_least(3, "puma")]
    ),
    Workload.new(
      name: "post-10k", words: "POST of 10 kB that the application reads, keep-alive, c = 50", app: :mix, threads: 5, base: "puma",
      peers: %w[leat puma iodine unicorn], load: wrk("/echo", body: 10 * 1024), goals: [at_least(3, "puma")]
    ),
    Workload.new(
      name: "post-1m", words: "POST of 1 MB, c = 20", app: :mix, threads: 5, base: "puma",
      peers: %w[leat puma iodine unicorn], load: wrk("/echo", connections: 20, body: 1 << 20), goals: [at_least(1.5, "puma")]
    ),
    Workload.new(
      name: "rails-page", words: "examples/rails, the page with 50 rows, keep-alive, c = 50", app: :rails, threads: 3, base: "puma",
      peers: %w[leat puma unicorn nginx+puma], load: wrk("/"),
      goals: [not_behind("puma"), not_behind("unicorn"), not_behind("nginx+puma"), P99_BELOW_UNICORN]
    ),
    Workload.new(
      name: "rails-page-ab", words: "the same with a connection for each request (ab -n 1000 -c 50)", app: :rails, threads: 3, base: "puma",
      peers: %w[leat puma unicorn nginx+puma], load: ab("/", 1000),
      goals: [not_behind("puma"), not_behind("unicorn"), not_behind("nginx+puma"), P99_BELOW_UNICORN]
    ),
    Workload.new(
      name: "mixed-sleep", words: "2 % of the requests sleep 100 ms, the rest 1 ms; c = 50, 2 workers × 1 thread", app: :mix, threads: 1,
      base: "puma", peers: %w[leat puma unicorn iodine], load: wrk("/mixed"),
      goals: [
        Goal.new("at least 85 % of workers / mean service time",
                 ->(found) { found["leat"]["rps"] >= 0.85 * WORKERS / MIXED_MEAN_S }),
        Goal.new("p99 under 300 ms", ->(found) { found["leat"]["p99"] < 300 })
      ]
    ),
    Workload.new(
      name: "mixed-sleep-ab", words: "the same with a connection for each request (ab -n 2000 -c 50)", app: :mix, threads: 1,
      base: "puma", peers: %w[leat puma unicorn iodine], load: ab("/mixed", 2000), goals: [ahead_of("puma"), ahead_of("unicorn")]
    ),
    Workload.new(
      name: "cpu2", words: "2 ms of processor time each; c = 50, 2 workers × 1 thread", app: :mix, threads: 1, base: "puma",
      peers: %w[leat puma unicorn iodine], load: wrk("/cpu2"),
      goals: [Goal.new("p99 not above 1.3 × clients × service time / workers",
                       ->(found) { found["leat"]["p99"] <= 1.3 * CLIENTS * CPU_MS / WORKERS })]
    ),
    Workload.new(
      name: "static-1k", words: "a file of 1 kB, keep-alive, c = 50", app: :static, threads: 1, base: "nginx",
      peers: %w[leat nginx lighttpd], load: wrk("/1k.txt"), goals: [ahead_of("nginx"), ahead_of("lighttpd")]
    ),
    Workload.new(
      name: "static-100k", words: "a file of 100 kB, keep-alive, c = 50", app: :static, threads: 1, base: "nginx",
      peers: %w[leat nginx lighttpd], load: wrk("/100k.bin"), goals: [ahead_of("nginx"), ahead_of("lighttpd")]
    ),
    Workload.new(
      name: "static-floor", words: "1 kB from one processor, beside a bare epoll server with a fixed answer", app: :static, threads: 1,
      base: "bare-pinned", peers: %w[leat-pinned bare-pinned], load: wrk("/1k.txt", cpu: Etc.nprocessors - 1),
      goals: [Goal.new("within 15 % of the bare server", ->(found) { found["leat-pinned"]["rps"] >= 0.85 * found["bare-pinned"]["rps"] })]
    ),
    Workload.new(
      name: "idle", words: "Rails, two workers, warmed up, nothing to do: system calls over 10 s, memory", app: :rails, threads: 3,
      base: "unicorn", peers: %w[leat unicorn puma], load: :idle,
      goals: [
        Goal.new("no process makes a system call more often than once a second", ->(found) { found["leat"]["busiest"] <= 1.0 }),
        Goal.new("front and master under 10 MB of private memory", ->(found) { found["leat"]["core_kb"] < 10 * 1024 }),
        Goal.new("all processes take no more PSS than unicorn's", ->(found) { found["leat"]["pss_kb"] <= found["unicorn"]["pss_kb"] })
      ]
    ),
    Workload.new(
      name: "memory", words: "Rails, two preloading workers, after the same 3000 requests to each peer", app: :rails, threads: 3,
      base: "puma", peers: %w[leat puma unicorn], load: :memory,
      goals: [
        Goal.new("all processes take at least 15 % less PSS than puma's", ->(found) { found["leat"]["pss_kb"] <= 0.85 * found["puma"]["pss_kb"] })
      ]
    ),
    Workload.new(
      name: "spawn", words: "Rails, one more worker from the warm mold: from the signal until it serves", app: :rails, threads: 3,
      base: "leat", peers: %w[leat], load: :spawn, goals: [Goal.new("under 50 ms", ->(found) { found["leat"]["p50"] < 50 })]
    ),
    Workload.new(
      name: "head", words: "bytes of the pulse's response head", app: :mix, threads: 1, base: "puma",
      peers: %w[leat puma unicorn iodine agoo nginx+puma], load: :head,
      goals: [Goal.new("at most 100 bytes, date included", ->(found) { found["leat"]["bytes"] <= 100 })]
    )
  ].freeze

  ALL = LIST.to_h { |workload| [workload.name, workload] }.freeze
end
