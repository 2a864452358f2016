# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# What the server says of itself: banner, status, log.
class ReportsTest < ServerCase
  def test_the_admin_address_stands_in_the_banner_and_not_among_the_listeners
    app 'run(proc { [200, {}, []] })'
    admin = "127.0.0.1:#{free_port}"
    server = start("--admin", admin)
    assert_match(/^  admin .*#{admin}$/, server.output)
    addresses = status(server)["listeners"].map { |listener| listener["address"] }
    refute_empty addresses
    refute_includes addresses, admin
  end

  def test_what_the_application_prints_stands_in_the_log_at_once
    app '$stdout.puts "loading"
         run(proc { $stdout.puts "serving"; $stdout.print "half"; [200, {}, []] })'
    config "log: log/leat.log\nworkers: 1\n"
    server = start("-e", "production", wait: false)
    log = File.join(@dir, "log/leat.log")
    eventually(30) { get(server, "/").code == "200" rescue false }
    text = eventually(2, "it is written") { File.read(log).then { |text| text if text.include?("half") } }
    assert_match(/^loading$/, text)
    assert_match(/^serving$/, text)
  end

  def test_a_restart_says_what_it_does_when_it_begins
    app 'run(proc { [200, {}, []] })'
    server = start
    Process.kill("USR1", server.pid)
    eventually(20, "it begins") { server.output.match?(/restart: generation 2 is being loaded$/) }
  end

  def test_a_start_that_fails_does_not_speak_of_draining
    app 'raise "broken"'
    server = start("-e", "production", wait: false)
    assert_equal 1, wait_exit(server.pid)
    refute_includes server.output, "draining"
  end
end
