# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Runs workloads in rounds: in each round every peer is started, warmed up, measured and stopped in
# turn, so that what changes on the machine meanwhile meets all of them.

require_relative "load"
require_relative "peers"
require_relative "idle"
require_relative "memory"
require_relative "spawn"

class Measure
  Row = Struct.new(:workload, :peer, :values)

  def initialize(options)
    @rounds, @seconds, @only = options.values_at(:rounds, :seconds, :peers)
  end

  # Rows of all rounds. A peer that cannot be measured is told about and left out.
  def run(workloads)
    groups = workloads.group_by { |workload| [workload.app, workload.threads] }
    Array.new(@rounds) { |round| groups.flat_map { |(app, threads), group| run_group(round, app, threads, group) } }.flatten
  end

  private

  def run_group(round, app, threads, group)
    peers = group.flat_map(&:peers).uniq & (@only || Peers::ALL.keys)
    peers = peers.rotate(round)
    peers.flat_map do |name|
      run_peer(round, name, app, threads, group.select { |workload| workload.peers.include?(name) })
    end
  end

  def run_peer(round, name, app, threads, group)
    rows = []
    Peer.run(name, Peers::ALL.fetch(name), app, threads) do |peer|
      group.each do |workload|
        values = once(peer, workload, round) or next
        rows << Row.new(workload.name, name, values)
        tell(round, name, workload, values)
      end
    end
    rows
  rescue RuntimeError, SystemCallError, EOFError => error
    warn "#{name}: #{error.message}"
    rows
  end

  def once(peer, workload, round)
    case workload.load
    when :head then { "bytes" => peer.get("/pulse").bytesize }
    when :idle then Idle.new(peer).measure if round.zero?
    when :memory then Memory.new(peer).measure
    when :spawn then Spawn.new(peer).measure
    else loaded(peer, workload)
    end
  end

  def loaded(peer, workload)
    workload.load.call(peer, 1)
    before = peer.cpu_s
    values = workload.load.call(peer, @seconds)
    cpu_s = peer.cpu_s - before
    values.merge("cpu_us" => cpu_s * 1e6 / [values["requests"], 1].max, "pss_kb" => peer.memory.values.sum { |one| one["pss_kb"] })
  end

  def tell(round, name, workload, values)
    shown = values.slice("rps", "p99", "errors", "cpu_us", "bytes", "busiest", "core_kb", "pss_kb", "p50").compact
    warn format("%d %-11s %-14s %s", round + 1, name, workload.name, shown.map { |key, value| "#{key} #{value.round(1)}" }.join("  "))
  end
end
