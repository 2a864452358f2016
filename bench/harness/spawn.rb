# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# How long one more worker takes, from the signal that asks for it until it serves.

require_relative "load"

class Spawn
  TIMES = 9
  LIMIT_S = 10
  SERVES = / serves: /

  def initialize(peer)
    @peer = peer
  end

  def measure
    Load.ab(@peer, "/", requests: 200, connections: 4)
    waits = Array.new(TIMES) { once }.sort
    { "p50" => waits[TIMES / 2], "max" => waits.last, "processes" => @peer.processes.size }
  end

  private

  # The worker goes again before the next one comes.
  def once
    count = serving
    master = @peer.processes.first
    begun = now
    Process.kill(:TTIN, master)
    wait_until { serving > count }
    took = now - begun
    processes = @peer.processes.size
    Process.kill(:TTOU, master)
    wait_until { @peer.processes.size < processes }
    took * 1000
  end

  def serving = Dir[File.join(@peer.folder, "*.log")].sum { |file| File.read(file).scan(SERVES).size }

  def wait_until
    limit = now + LIMIT_S
    until yield
      raise "#{@peer.name}: no worker came or went\n#{@peer.log}" if now > limit

      sleep 0.001
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
