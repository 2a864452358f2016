# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Medians, ratios and goals as Markdown.

require_relative "machine"

class Report
  COLUMNS = {
    "rps" => ["req/s", ->(value) { value.round.to_s }],
    "ratio" => ["ratio", ->(value) { format("%.2f", value) }],
    "spread" => ["spread", ->(value) { value }],
    "p50" => ["p50 ms", ->(value) { format("%.1f", value) }],
    "p99" => ["p99 ms", ->(value) { format("%.1f", value) }],
    "max" => ["max ms", ->(value) { value.round.to_s }],
    "cpu_us" => ["CPU µs/req", ->(value) { format("%.1f", value) }],
    "errors" => ["errors", ->(value) { value.round.to_s }],
    "bytes" => ["bytes", ->(value) { value.round.to_s }],
    "busiest" => ["calls/s, busiest process", ->(value) { format("%.1f", value) }],
    "calls" => ["calls/s, all", ->(value) { format("%.1f", value) }],
    "processes" => ["processes", ->(value) { value.round.to_s }],
    "core_kb" => ["front + master private MB", ->(value) { value.zero? ? "" : format("%.1f", value / 1024.0) }],
    "largest_kb" => ["largest process, private MB", ->(value) { format("%.1f", value / 1024.0) }],
    "private_kb" => ["private MB", ->(value) { format("%.1f", value / 1024.0) }],
    "pss_kb" => ["PSS MB", ->(value) { format("%.1f", value / 1024.0) }]
  }.freeze

  def initialize(rows, workloads, options)
    @rows, @workloads, @options = rows, workloads, options
  end

  def to_s
    facts = Machine.facts.map { |name, words| "- #{name}: #{words}" }.join("\n")
    <<~HEAD + @workloads.map { |workload| section(workload) }.compact.join("\n")
      # Measured on #{Time.now.strftime('%Y-%m-%d')}

      Medians of #{@options[:rounds]} rounds of #{@options[:seconds]} s in which the peers take turns, 2 workers each. Only ratios within one
      table count: the same server differs by 10 to 20 % from start to start.

      #{facts}

    HEAD
  end

  private

  def section(workload)
    found = medians(workload)
    return if found.empty?

    columns = COLUMNS.keys.select { |key| found.values.any? { |values| values[key] } }
    lines = ["## #{workload.name}", "", "#{workload.words[0].upcase}#{workload.words[1..]}.", "",
             "| | #{columns.map { |key| COLUMNS[key][0] }.join(' | ')} |", "|---|#{'--:|' * columns.size}"]
    found.each { |peer, values| lines << "| #{peer} | #{columns.map { |key| cell(key, values[key]) }.join(' | ')} |" }
    lines << "" << goals(workload, found).join("\n")
    "#{lines.join("\n").rstrip}\n"
  end

  def cell(key, value) = value ? COLUMNS[key][1].call(value) : ""

  def goals(workload, found)
    workload.goals.filter_map do |goal|
      "- #{goal.met.call(found) ? 'met' : 'NOT MET'}: #{goal.words}"
    rescue NoMethodError # a peer of the goal was not measured
      nil
    end
  end

  # {peer => {key => median}}, in the workload's order.
  def medians(workload)
    rows = @rows.select { |row| row.workload == workload.name }.group_by(&:peer)
    found = workload.peers.select { |peer| rows[peer] }.to_h do |peer|
      keys = rows[peer].flat_map { |row| row.values.keys }.uniq
      [peer, keys.to_h { |key| [key, median(rows[peer].map { |row| row.values[key] }.compact)] }]
    end
    add_ratios(workload, found, rows)
  end

  def add_ratios(workload, found, rows)
    base = found.dig(workload.base, "rps")
    found.each do |peer, values|
      next unless values["rps"]

      values["ratio"] = values["rps"] / base if base
      rates = rows[peer].map { |row| row.values["rps"] }
      values["spread"] = "#{rates.min.round}-#{rates.max.round}" if rates.size > 1
    end
  end

  def median(values)
    sorted = values.sort
    middle = sorted.size / 2
    sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
  end
end
