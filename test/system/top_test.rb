# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "pty"
require "io/console"

# `leat top` and `leat memory`: what a running server does and takes, for people and for programs.
class TopTest < ServerCase
  def setup
    super
    app 'run(proc { |env| sleep(env["QUERY_STRING"].to_f); [200, {"content-type" => "text/plain"}, ["ok"]] })'
  end

  NUMBERS = %w[private_dirty_bytes pss_bytes rss_bytes].freeze

  # What the kernel says about a process now.
  def rollup(pid)
    text = File.read("/proc/#{pid}/smaps_rollup")
    %w[Private_Dirty Pss Rss].map { |name| text[/^#{name}: +(\d+) kB/, 1].to_i * 1024 }
  end

  # --- memory

  def test_memory_has_every_process_of_the_server_and_its_sums
    server = start("-e", "production", "-w", "2")
    eventually { workers(server).size == 2 && pool(server)["slots"]["total"] == 6 }
    out, code = leat("memory", "--json")
    assert_equal 0, code, out
    memory = JSON.parse(out)
    all = memory["processes"]
    assert_equal %w[master front mold worker worker], all.map { |process| process["role"] }
    expected = [server.pid] + %w[front mold worker].flat_map { |role| processes(server, role).sort }
    assert_equal expected, all.map { |process| process["pid"] }.then { |pids| pids.first(3) + pids.drop(3).sort }
    NUMBERS.each do |key|
      assert_equal all.sum { |process| process[key] }, memory["total"][key]
      assert_equal all.last(3).sum { |process| process[key] }, memory["pools"].first[key]
    end
    assert_equal [5, 3], [memory["total"]["processes"], memory["pools"].first["processes"]]
    all.each do |process|
      process.values_at(*NUMBERS).zip(rollup(process["pid"])).each { |told, real| assert_in_delta real, told, 4 << 20 }
    end
  end

  def test_memory_for_people_names_pools_and_releases
    write "releases/7/config.ru", 'run(proc { [200, {}, ["ok"]] })'
    File.symlink("releases/7", File.join(@dir, "current"))
    server = start("-e", "production", "-w", "1", File.join(@dir, "current"))
    out, code = leat("memory", File.join(@dir, "current"))
    assert_equal 0, code, out
    lines = out.lines.map(&:chomp)
    assert_match(/\Aprocess +PID +private +PSS +RSS\z/, lines.first)
    assert_match(/\Amaster +#{server.pid}( +\d+\.\d M){3}\z/, lines[1])
    assert_match(/\Afront accepting +\d+/, lines[2])
    assert_match(/\Apool \S+\z/, lines[3])
    assert_match(/\A  mold @1 \(7\) ready +\d+/, lines[4])
    assert_match(/\A  worker @1 \(7\) idle +\d+/, lines[5])
    assert_match(/\A  together +2( +\d+\.\d M){3}\z/, lines[6])
    assert_match(/\Aall processes +4( +\d+\.\d M){3}\z/, lines[7])
  end

  def test_nothing_running_is_status_3
    assert_equal ["not running\n", 3], leat("memory")
    assert_equal ["not running\n", 3], leat("memory", "--json")
    assert_equal ["not running\n", 3], leat("top")
  end

  # --- top

  def test_where_the_output_is_no_terminal_one_look_is_printed
    server = start("-e", "production", "-w", "1")
    get(server, "/")
    out, code = leat("top")
    assert_equal 0, code, out
    refute_includes out, "\e"
    assert_match(/\Aleat \S+, PID #{server.pid}, production, up /, out)
    assert_match(%r{^requests +\d+\.\d/s  \(2xx \d+\.\d/s, }, out)
    assert_match(/^pool \S+: up  #{@dir}$/, out)
    assert_match(/^  slots 0 of 3 busy  queue 0 of 1000 /, out)
    assert_match(%r{^ +#{workers(server).first} idle +1 +0/3 +1 +0\.0/s +\d+M}, out)
    assert_equal 1, out.scan(/^leat /).size
  end

  def test_so_many_looks_show_what_happens_meanwhile
    server = start("-e", "production", "-w", "1")
    client = Thread.new { get(server, "/slow?1.7") }
    eventually { pool(server)["slots"]["busy"] == 1 }
    out, code = leat("top", "-n", "2")
    assert_equal 0, code, out
    assert_equal 2, out.scan(/^leat /).size
    assert_match(%r{^ +\d+ busy +1 +1/3 .* \d+ ms GET /slow$}, out)
    client.join
    %w[0 x -1].each { |times| assert_equal 2, leat("top", "--times=#{times}").last }
  end

  # Runs top on a terminal of that size; the block talks to it.
  def on_terminal(rows: 12, columns: 60, dir: @dir)
    PTY.open do |master, slave|
      slave.winsize = [rows, columns]
      before = `stty -g < #{slave.path}`
      pid = spawn_child(clean_env, binary, "top", in: slave, out: slave, err: slave, chdir: dir)
      seen = +""
      reader = Thread.new { loop { seen << master.readpartial(4096) } rescue nil }
      yield master, seen, pid
      code = wait_exit(pid)
      eventually { seen.include?("\e[?1049l") }
      assert_equal before, `stty -g < #{slave.path}`
      reader.kill
      code
    end
  end

  def test_on_a_terminal_it_is_live_and_q_gives_the_terminal_back
    start("-e", "production", "-w", "1")
    code = on_terminal do |terminal, seen|
      eventually(10, "two looks") { seen.scan("\e[H").size >= 2 && seen.include?("0.0/s") }
      assert seen.start_with?("\e[?1049h\e[?25l")
      lines = seen.split("\e[H").last.gsub(/\e\[[0-9;?]*[A-Za-z]/, "").split("\r\n")
      assert_operator lines.map(&:size).max, :<=, 60
      assert_operator lines.size, :<, 12
      terminal.write("xq")
    end
    assert_equal 0, code
  end

  def test_a_signal_gives_the_terminal_back_as_well
    start("-e", "production", "-w", "1")
    code = on_terminal do |_, seen, pid|
      eventually(10) { seen.include?("\e[H") }
      Process.kill("TERM", pid)
    end
    assert_equal 0, code
  end

  def test_a_server_that_ends_meanwhile_ends_it
    server = start("-e", "production", "-w", "1")
    code = on_terminal do |_, seen|
      eventually(10) { seen.include?("\e[H") }
      assert_equal 0, stop(server)
    end
    assert_equal 3, code
  end
end
