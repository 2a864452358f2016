#!/usr/bin/env ruby
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Runs the files of system tests in a few processes at once, since they mostly wait. Each has its own
# runner, whose output is shown when it has ended; the status is 0 when all of them passed.
#
# usage: tools/system_tests.rb FILE...     TEST_JOBS=N  so many processes instead of 3

require "tempfile"

LOAD_ALL = "ARGV.each { |file| require File.expand_path(file) }"

# The longest files first, each to the group that has the least: a file's size tells roughly its time.
def groups(files, count)
  made = Array.new(count) { [] }
  files.sort_by { |file| -File.size(file) }.each do |file|
    made.min_by { |group| group.sum { |member| File.size(member) } } << file
  end
  made.reject(&:empty?)
end

def command(files) = [RbConfig.ruby, "-E", "UTF-8", "-Ilib", "-Itest", "-e", LOAD_ALL, *files]

files = ARGV
jobs = Integer(ENV.fetch("TEST_JOBS", "3"))
exec(*command(files)) if jobs < 2 || files.size < 2

running = groups(files, jobs).to_h do |group|
  output = Tempfile.new("leat-tests")
  [Process.spawn(*command(group), out: output.path, err: [:child, :out]), output]
end
passed = true
until running.empty?
  pid, status = Process.wait2
  output = running.delete(pid) or next
  passed &&= status.success?
  puts File.read(output.path)
  puts "a runner ended with #{status}" unless status.success?
  $stdout.flush
end
exit(passed)
