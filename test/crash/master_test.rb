# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# kill -9 of master: all go within two seconds, and nothing that it left blocks the next start.
class MasterCrashTest < ServerCase
  def setup
    super
    FileUtils.mkdir_p(File.join(@dir, "tmp/pids"))
    app <<~'RUBY'
      run(lambda do |env|
        case env["PATH_INFO"]
        when "/spin" then File.write("at", "1\n", mode: "a"); loop {}
        when "/hold" then File.write("at", "1\n", mode: "a"); File.open("gate", "r").close
        when "/stream" then next [200, {}, proc { |io| File.write("at", "1\n", mode: "a"); loop { io.write("x" * 1000) } }]
        end
        [200, {"content-type" => "text/plain"}, [Process.pid.to_s]]
      end)
    RUBY
    File.mkfifo(File.join(@dir, "gate"))
  end

  def tree(pid) = children_of(pid).flat_map { |child, _| [child, *tree(child)] }

  def test_all_of_it_ends_whatever_the_processes_do_and_the_next_one_starts
    config %(listen: ["unix:run/web.sock"]\n)
    port = free_port
    2.times do
      server = start(:no_port, "-e", "production", "-w", "2", "-t", "2", env: { "PORT" => nil })
      sockets = %w[/spin /hold /stream].map do |path|
        UNIXSocket.new(File.join(@dir, "run/web.sock")).tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }
      end
      eventually(10, "they are at it") { File.exist?(path = File.join(@dir, "at")) && File.readlines(path).size == 3 }
      all = tree(server.pid)
      assert_operator all.size, :>=, 4
      Process.kill("KILL", server.pid)
      assert_equal "signal 9", wait_exit(server.pid)
      eventually(2, "all are gone") { all.all? { |pid| gone?(pid) } }
      sockets.each(&:close)
      FileUtils.rm(File.join(@dir, "at"))
    end
    again = start("-b", "127.0.0.1:#{port}", "-e", "production", "-w", "1")
    assert_equal "200", Net::HTTP.get_response("127.0.0.1", "/", port).code
    assert_equal 0, stop(again)
    assert_empty Dir.children(File.join(@dir, "tmp/pids"))
  end

  def test_stopped_processes_end_with_it_too
    server = start("-e", "production", "-w", "2", "-t", "1")
    all = tree(server.pid)
    stopped = [*processes(server, "front"), workers(server).first]
    stopped.each { |pid| Process.kill("STOP", pid) }
    Process.kill("KILL", server.pid)
    wait_exit(server.pid)
    eventually(2, "all are gone") { all.all? { |pid| gone?(pid) } }
  end

  def test_while_it_starts
    app 'File.write("loading", Process.pid.to_s); File.open("gate", "r").close; run(proc { |env| [200, {}, []] })'
    server = start("-e", "production", wait: false)
    eventually(20, "the application loads") { File.size?(File.join(@dir, "loading")) }
    all = tree(server.pid)
    Process.kill("KILL", server.pid)
    wait_exit(server.pid)
    eventually(2, "all are gone") { all.all? { |pid| gone?(pid) } }
  end
end
