# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What all processes of a server take after the same requests, whatever its speed.

require_relative "load"

class Memory
  REQUESTS = 1500
  SETTLE_S = 3

  def initialize(peer)
    @peer = peer
  end

  def measure
    errors = [["/", 6], ["/api/pulse", 6]].sum { |path, clients| Load.ab(@peer, path, requests: REQUESTS, connections: clients)["errors"] }
    sleep SETTLE_S
    memory = @peer.memory.values
    sum = ->(list, key) { list.sum { |one| one[key] } }
    { "pss_kb" => sum[memory, "pss_kb"], "private_kb" => sum[memory, "private_kb"], "processes" => memory.size, "errors" => errors,
      "largest_kb" => memory.map { |one| one["private_kb"] }.max }
  end
end
