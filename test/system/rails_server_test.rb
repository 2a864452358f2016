# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../rails_app"

# `rails server` with Leat in the bundle. What the user says wins over leat.yml, what Rails says by
# itself loses.
class RailsServerTest < ServerCase
  include RailsApp

  def setup
    super
    write_rails_with_leat
  end

  def rails_server(*options, env: {}, port: 3000)
    out = File.join(@dir, "output.#{@servers.size}")
    pid = Process.spawn(clean_env.merge("LEAT_BINARY" => BINARY, **env), RbConfig.ruby, "bin/rails", "server",
                        *options.map(&:to_s), chdir: @dir, out: out, err: [:child, :out], in: "/dev/null")
    Server.new(pid, @dir, port, out).tap { |server| @servers << server }
  end

  def ready(server) = server.tap { wait_ready(server) }

  def test_its_user_s_flags_win_and_the_pid_stays
    port = free_port
    config "listen: #{free_port}\npid: tmp/pids/other.pid\nenvironment: staging\nworkers: 2\n"
    server = ready(rails_server("-u", "leat", "-p", port, "-b", "127.0.0.1", "-e", "production", "-P", "tmp/pids/mine.pid", port: port))
    assert_match(/\Afirst production/, get(server, "/").body)
    assert_equal ["127.0.0.1:#{port}"], status(server)["listeners"].map { |one| one["address"] }
    assert_equal server.pid, File.read(File.join(@dir, "tmp/pids/mine.pid")).to_i
    assert_match(/\Aleat: master/, File.read("/proc/#{server.pid}/cmdline"))
    assert_equal 2, workers(server).size
    refute_match(/left over/, server.output)
    assert_equal 0, stop(server)
    assert_empty Dir.children(File.join(@dir, "tmp/pids"))
  end

  def test_its_own_defaults_lose_to_the_file
    port = free_port
    config "listen: #{port}\npid: tmp/pids/other.pid\n"
    server = ready(rails_server(env: { "RAILS_ENV" => "production" }, port: port))
    assert_match(/\Afirst production/, get(server, "/").body)
    assert_equal server.pid, File.read(File.join(@dir, "tmp/pids/other.pid")).to_i
    assert_equal 0, stop(server, "INT")
  end

  def test_development_logs_on_the_terminal_and_reloads
    port = free_port
    server = ready(rails_server("-p", port, port: port))
    assert_match(/\Afirst development/, get(server, "/").body)
    eventually { server.output.include?('Started GET "/"') }
    path = "app/controllers/pages_controller.rb"
    write path, RailsApp::FILES[path].sub("first", "second")
    assert_match(/\Asecond development/, get(server, "/").body)
    assert_equal server.pid, File.read(File.join(@dir, "tmp/pids/server.pid")).to_i, "Rails' own PID file"
    assert_equal 0, stop(server)
    refute_path_exists File.join(@dir, "tmp/pids/server.pid")
  end

  def test_a_restart_loads_what_is_there_now
    port = free_port
    server = ready(rails_server("-p", port, "-e", "production", port: port))
    path = "app/controllers/pages_controller.rb"
    write path, RailsApp::FILES[path].sub("first", "second")
    with_witness(server) do
      out, code = leat("restart")
      assert_equal 0, code, out
    end
    assert_match(/\Asecond production/, get(server, "/").body)
  end

  def test_d_goes_into_the_background_and_logs
    port = free_port
    parent = rails_server("-p", port, "-d", port: port)
    assert_equal 0, wait_exit(parent.pid)
    log = File.join(@dir, "log/leat.log")
    eventually(START_SECONDS, "it is ready") { File.exist?(log) && File.read(log).include?("ready: PID") }
    assert_match(/\Afirst development/, get(parent, "/").body)
    pid = File.read(File.join(@dir, "tmp/pids/server.pid")).to_i
    assert_match(/\Aleat: master/, File.read("/proc/#{pid}/cmdline"))
    assert_equal 0, leat("stop").last
    eventually { !File.exist?("/proc/#{pid}") }
  ensure
    leat("stop", "--now")
  end

  def test_a_second_one_is_told_that_one_is_running
    port = free_port
    ready(rails_server("-p", port, port: port))
    second = rails_server("-p", free_port)
    assert_equal 1, wait_exit(second.pid)
    assert_match(/already running/, second.output)
  end
end
