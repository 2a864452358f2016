# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What a server does and holds when it has nothing to do.

require_relative "load"

class Idle
  SECONDS = 10
  SETTLE_S = 12 # longer than any time after which something is given back

  def initialize(peer)
    @peer = peer
  end

  def measure
    Load.wrk(@peer, "/", connections: 10, seconds: 2)
    sleep SETTLE_S
    calls = count_calls(@peer.processes)
    memory = @peer.memory
    core = memory.values.select { |one| one["title"].match?(/\Aleat: (master|front)/) }
    { "busiest" => calls.values.max.to_f / SECONDS, "calls" => calls.values.sum.to_f / SECONDS,
      "core_kb" => core.sum { |one| one["private_kb"] }, "pss_kb" => memory.values.sum { |one| one["pss_kb"] },
      "private_kb" => memory.values.sum { |one| one["private_kb"] }, "processes" => memory.size }
  end

  private

  # System calls of each process with all its threads, begun while strace watched.
  def count_calls(pids)
    pids.map { |pid| [pid, watch(pid)] }.to_h do |pid, (file, watcher)|
      Process.wait(watcher)
      [pid, File.readlines(file).count { |line| line.match?(/\A(\[pid +\d+\] |\d+ +)?\w+\(/) }]
    end
  end

  def watch(pid)
    file = File.join(@peer.folder, "strace.#{pid}")
    [file, Process.spawn("timeout", SECONDS.to_s, "strace", "-f", "-qq", "-e", "signal=none", "-o", file, "-p", pid.to_s, err: File::NULL)]
  end
end
