# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../redmine_case"

# Redmine with many clients, in a copy with a database of its own.
class RedmineLoadTest < RedmineCase
  def test_2000_requests_with_a_killed_worker_in_the_middle_and_a_stop_under_load
    server = start_copy(copy_redmine)
    done = Queue.new
    clients = 8.times.map do
      Thread.new { Net::HTTP.start("127.0.0.1", server.port, read_timeout: 60) { |http| 250.times { done << http.get("/login").code } } }
    end
    eventually(60, "1000 are done") { done.size > 1000 }
    Process.kill("KILL", workers(server).first)
    clients.each(&:join)
    assert_equal({ "200" => 2000 }, Array.new(done.size) { done.pop }.tally)
    stop_under_load(server)
  end

  # Each client asks on new connections until it is refused; what was accepted gets its answer.
  def stop_under_load(server)
    counts = Queue.new
    clients = 8.times.map do
      Thread.new do
        loop { counts << Net::HTTP.get_response("127.0.0.1", "/login", server.port).code }
      rescue Errno::ECONNREFUSED
        nil
      end
    end
    eventually(20, "it is busy") { counts.size > 40 }
    assert_equal 0, stop(server)
    clients.each(&:join)
    assert_equal ["200"], Array.new(counts.size) { counts.pop }.uniq
  end
end if RedmineCase.there?
