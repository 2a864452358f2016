# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "pty"
require_relative "../server_case"

# In development, on a terminal: a broken application is shown until it is mended, the worker reads the
# keyboard, and Ctrl-C ends everything.
class DevelopmentTest < ServerCase
  UP = 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["up: #{env["rack.input"].read}"]] })'
  BROKEN = "\nrequire_relative 'missing'\n#{UP}".freeze
  BROWSER = { "Accept" => "text/html,application/xhtml+xml,*/*;q=0.8" }.freeze

  # Writes the application so that its time differs from the one before.
  def edit(text)
    @edits = @edits.to_i + 1
    path = app(text)
    File.utime(Time.now, Time.now + @edits, path)
  end

  def test_a_failed_start_is_answered_with_the_exception_until_the_code_changes
    edit BROKEN
    server = start
    assert_match(/LoadError: cannot load such file .*missing/, server.output)
    3.times do
      reply = get(server, "/any/path", BROWSER)
      assert_equal ["500", "text/html; charset=utf-8"], [reply.code, reply["content-type"]]
      assert_match(/LoadError/, reply.body)
      assert_match(%r{<b>#{@dir}/config\.ru:2:}, reply.body)
    end
    assert_equal "degraded", pool(server)["state"]
    assert_match(/missing/, pool(server)["error"])
    edit UP
    assert_equal ["200", "up: "], get(server, "/").then { |reply| [reply.code, reply.body] }
    assert_equal "up", pool(server)["state"]
    assert_nil pool(server)["error"]
    assert_equal 0, stop(server)
  end

  def test_the_request_that_finds_the_change_loses_nothing_whatever_its_method
    edit BROKEN
    server = start
    reply = http(server, "/", method: "POST", body: "x")
    assert_equal ["500", "text/plain; charset=utf-8"], [reply.code, reply["content-type"]]
    assert_match(/\ALoadError: .*config\.ru:2:in/m, reply.body)
    edit UP
    body = "y" * 300_000
    assert_equal "up: #{body}", http(server, "/", method: "PUT", body: body).body
  end

  def test_a_file_that_was_missing_is_a_change
    edit BROKEN
    server = start
    assert_equal "500", get(server, "/").code
    write "missing.rb", ""
    assert_equal "200", get(server, "/").code
  end

  def test_many_tries_in_a_row_are_not_held_back
    server = nil
    12.times do |index|
      edit "raise 'try #{index}: <&>'"
      server ||= start
      assert_match(/try #{index}: &lt;&amp;&gt;/, get(server, "/", BROWSER).body)
    end
    edit UP
    assert_equal "200", get(server, "/").code
    assert_operator now - @begun, :<, 20
  end

  def setup
    super
    @begun = now
  end

  def test_syntax_errors_and_exit_are_failures_like_others
    edit "run(proc {"
    server = start
    assert_match(/SyntaxError/, get(server, "/").body)
    edit "exit 3"
    assert_match(/left by exit\(3\)/, get(server, "/").body)
    edit UP
    assert_equal "200", get(server, "/").code
  end

  def test_a_worker_that_is_replaced_while_the_code_is_broken_says_so
    edit UP
    server = start
    edit BROKEN
    assert_equal "200", get(server, "/").code, "what is loaded goes on"
    Process.kill("KILL", workers(server).first)
    assert_equal "500", get(server, "/").code
    edit UP
    assert_equal "200", get(server, "/").code
  end

  def test_a_restart_into_broken_code_fails_and_keeps_what_serves
    edit UP
    server = start
    edit BROKEN
    out, code = leat("restart")
    assert_equal 1, code
    assert_match(/LoadError/, out)
    assert_equal "200", get(server, "/").code
  end

  def test_a_restart_gets_out_of_it_too
    edit BROKEN.sub("require_relative 'missing'", "raise 'no' unless File.exist?('/proc/self/fd') && File.exist?('flag')")
    server = start
    assert_equal "500", get(server, "/").code
    write "flag", ""
    assert_equal "500", get(server, "/").code, "no file of the code has changed"
    out, code = leat("restart")
    assert_equal 0, code, out
    assert_equal "200", get(server, "/").code
  end

  def test_with_d_and_elsewhere_a_failed_start_is_exit_1
    edit BROKEN
    [["-d"], ["-e", "production"], ["-e", "staging", "-d"]].each do |options|
      out, code = leat("start", "-p", free_port, *options)
      assert_equal 1, code, "#{options}: #{out}"
      assert_match(/LoadError.*config\.ru:2/, out)
      assert_equal 3, leat("status").last
    end
  end

  # Runs the block with the server on a terminal of its own: reading end, writing end, PID.
  def on_a_terminal
    port = free_port
    reader, writer, pid = PTY.spawn(clean_env.merge("TERM" => "dumb"), BINARY, "start", "-p", port.to_s, chdir: @dir)
    @children << pid
    out = File.join(@dir, "output")
    copy = Thread.new { reader.each_char { |char| File.write(out, char, mode: "a") } rescue nil }
    server = Server.new(pid, @dir, port, out)
    eventually(START_SECONDS, "it is ready") { File.exist?(out) && server.output.include?("Ctrl-C") }
    yield server, writer
  ensure
    [reader, writer].each { |io| io&.close }
    copy&.join
  end

  def test_the_terminal_is_the_worker_s_standard_input
    app 'run(proc { |env| STDOUT.print("name? "); [200, {}, ["hello #{STDIN.tty?} #{STDIN.gets.chomp}"]] })'
    on_a_terminal do |server, keyboard|
      client = Thread.new { get(server, "/").body }
      eventually { server.output.include?("name? ") }
      keyboard.puts "Ada"
      assert_equal "hello true Ada", client.value
    end
  end

  def test_a_console_inside_a_request_works_and_the_server_goes_on
    app 'run(proc { |env| answer = 6; binding.irb; [200, {}, ["answer #{answer}"]] })'
    on_a_terminal do |server, keyboard|
      client = Thread.new { get(server, "/").body }
      eventually(20, "irb asks") { server.output.match?(/irb.*>/) }
      keyboard.puts "answer *= 7"
      keyboard.puts "exit"
      assert_equal "answer 42", client.value
      assert_equal 1, workers(server).size
    end
  end

  def test_ctrl_c_ends_master_and_worker_in_order
    app "at_exit { File.write('ended', 'in order') unless $$ == 0 }\n#{UP}"
    on_a_terminal do |server, keyboard|
      all = children_of(server.pid).map(&:first)
      keyboard.write "\u0003"
      assert_equal 0, wait_exit(server.pid)
      assert all.all? { |pid| gone?(pid) }
      assert_equal "in order", File.read(File.join(@dir, "ended"))
    end
  end

  def test_an_exception_in_a_request_is_shown_here_and_nowhere_else
    app "run(proc { |_env| raise ArgumentError, 'secret words' })"
    assert_match(/ArgumentError: secret words.*config\.ru:1/m, get(start, "/").body)
    reply = get(start("-e", "production"), "/")
    assert_equal "500", reply.code
    refute_match(/secret/, reply.body)
  end
end
