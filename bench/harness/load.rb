# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The load generators: each answers {"rps", "p50", "p99", "max" in ms, "errors", "requests"}.

require "json"
require_relative "machine"

module Load
  SCRIPT = File.join(Machine::BENCH, "load/wrk.lua")

  module_function

  # Keep-alive connections that ask again at once. cpu: the processor that wrk is bound to.
  def wrk(peer, path, connections:, seconds:, body: 0, cpu: nil)
    command = ["wrk", "-t1", "-c#{connections}", "-d#{seconds}s", "--timeout", "20s", "-s", SCRIPT, "http://127.0.0.1:#{peer.port}#{path}"]
    command = ["taskset", "-c", cpu.to_s, *command] if cpu
    text = IO.popen({ "BODY" => body.to_s }, command, err: %i[child out], &:read)
    found = JSON.parse(text[/^JSON (.*)$/, 1] || raise("wrk: #{text}"))
    good = found["requests"] - found["status"]
    { "rps" => good / found["seconds"], "p50" => found["p50"], "p99" => found["p99"], "max" => found["max"],
      "errors" => found.values_at("status", "connect", "read", "write", "timeout").sum, "requests" => found["requests"] }
  end

  # A new connection for each request.
  def ab(peer, path, requests:, connections:)
    text = IO.popen(["ab", "-q", "-r", "-l", "-n", requests.to_s, "-c", connections.to_s, "-s", "30", "http://127.0.0.1:#{peer.port}#{path}"],
                    err: %i[child out], &:read)
    rate = text[/Requests per second:\s+([\d.]+)/, 1] or raise "ab: #{text}"
    percentile = ->(percent) { text[/^\s+#{percent}%\s+(\d+)/, 1].to_f }
    bad = text[/Failed requests:\s+(\d+)/, 1].to_i + text[/Non-2xx responses:\s+(\d+)/, 1].to_i
    { "rps" => rate.to_f * (requests - bad) / requests, "p50" => percentile[50], "p99" => percentile[99], "max" => percentile[100],
      "errors" => bad, "requests" => requests }
  end
end
