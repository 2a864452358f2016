#!/usr/bin/env ruby
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Measures this server beside others; bench/README.md tells what and how.

require "optparse"
require_relative "harness/machine"
require_relative "harness/peers"
require_relative "harness/workloads"
require_relative "harness/measure"
require_relative "harness/report"

options = { rounds: 3, seconds: 3, peers: nil, out: nil }
parser = OptionParser.new do |cli|
  cli.banner = "usage: bench/run [options] [WORKLOAD...]      without a workload: all"
  cli.on("-r", "--rounds N", Integer, "rounds, peers taking turns (#{options[:rounds]})") { |n| options[:rounds] = n }
  cli.on("-s", "--seconds N", Integer, "of each run of wrk (#{options[:seconds]})") { |n| options[:seconds] = n }
  cli.on("-p", "--peers A,B", Array, "only these peers") { |names| options[:peers] = names }
  cli.on("-o", "--out FILE", "the report goes to this file as well (all workloads: bench/results/DATE.md)") { |file| options[:out] = file }
  cli.on("-l", "--list", "workloads and peers") do
    Workloads::ALL.each_value { |workload| puts format("%-12s %s", workload.name, workload.words) }
    puts "", "peers: #{Peers::ALL.keys.join(' ')}"
    exit
  end
end
parser.parse!

unknown = ARGV - Workloads::ALL.keys + (options[:peers] || []) - Peers::ALL.keys
abort "bench/run: no such workload or peer: #{unknown.join(' ')}" unless unknown.empty?

Machine.prepare
chosen = ARGV.empty? ? Workloads::ALL.values : Workloads::ALL.values_at(*ARGV)
out = options[:out] || (File.join(__dir__, "results", "#{Time.now.strftime('%Y-%m-%d')}.md") if ARGV.empty? && !options[:peers])

rows = Measure.new(options).run(chosen)
report = Report.new(rows, chosen, options).to_s
puts report
File.write(out, report) if out
