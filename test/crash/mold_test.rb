# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# kill -9 of the mold: workers serve on, and it is loaded again.
class MoldCrashTest < ServerCase
  def setup
    super
    app <<~'RUBY'
      File.write("loads", "#{Process.pid}\n", mode: "a")
      File.open("gate", "r").close if File.exist?("gate")
      run(proc { |env| [200, {"content-type" => "text/plain"}, [Process.pid.to_s]] })
    RUBY
  end

  def loads = File.readlines(File.join(@dir, "loads")).map(&:to_i)

  def mold(server) = eventually(10, "there is a mold") { processes(server, "mold").first }

  def kill(*pids) = pids.each { |pid| Process.kill("KILL", pid) }

  def assert_whole(server, without)
    eventually(15, "two workers and a mold") do
      now_there = workers(server)
      now_there.size == 2 && (now_there & without).empty? && processes(server, "mold").size == 1 && pool(server)["state"] == "up"
    end
    assert_equal "200", get(server, "/").code
  end

  def launch = start("-e", "production", "-w", "2", "-t", "2")

  def test_together_with_a_worker_that_it_should_fork_anew
    server = launch
    with_witness(server) do
      3.times do
        gone = [mold(server), workers(server).first]
        kill(*gone)
        assert_whole(server, gone)
      end
    end
  end

  def test_while_it_is_asked_to_fork
    server = launch
    with_witness(server) do
      old = mold(server)
      Process.kill("STOP", old)
      worker = workers(server).first
      kill(worker)
      eventually(5, "one worker is missing") { workers(server).size == 1 }
      kill(old)
      assert_whole(server, [old, worker])
    end
  end

  def test_while_it_loads_again
    server = launch
    with_witness(server) do
      File.mkfifo(gate = File.join(@dir, "gate"))
      old = mold(server)
      kill(old)
      eventually(10, "it loads") { loads.size == 2 }
      kill(loads.last)
      eventually(10, "it loads again") { loads.size == 3 }
      File.unlink(gate.tap { |path| File.open(path, "w", &:close) })
      assert_whole(server, [old])
    end
  end

  def test_with_every_worker_requests_wait
    server = launch
    all = [mold(server), *workers(server)]
    kill(*all)
    assert_equal "200", get(server, "/").code
    assert_whole(server, all)
  end
end
