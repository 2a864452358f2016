# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# `rackup -s leat`, by the gem rackup and by Rack 2's own command: the process that loaded the
# application becomes the server, and later generations come from config.ru.
class RackupTest < ServerCase
  COMMANDS = {
    "rack2" => 'gem "rack", "~> 2.2.0"; load Gem.bin_path("rack", "rackup", "~> 2.2.0")',
    "rack3" => 'gem "rack", "~> 3.0"; load Gem.bin_path("rackup", "rackup", "~> 2.0")'
  }.freeze
  SAYS = <<~'RUBY'
    words = [Rack.release, ENV["RACK_ENV"], $0, ENV.keys.grep(/LEAT_(CONTROL|MOLD|DEFAULT|BINARY)|HANDLER/).join("+")]
    run(proc { |env| [200, {"content-type" => "text/plain"}, [(words + [env["rack.multithread"]]).join(" ")]] })
  RUBY

  def setup
    super
    app SAYS
  end

  def rackup(kind, *options, libraries: [], env: {}, port: free_port)
    out = File.join(@dir, "output.#{@servers.size}")
    command = [RbConfig.ruby, "-I#{ROOT}/lib", *libraries.map { |name| "-r#{name}" }, "-e", COMMANDS.fetch(kind), "--", *options]
    pid = Process.spawn(clean_env.merge("LEAT_BINARY" => BINARY, **env), *command.map(&:to_s),
                        chdir: @dir, out: out, err: [:child, :out], in: "/dev/null")
    Server.new(pid, @dir, port, out).tap { |server| @servers << server }
  end

  def ready(server) = server.tap { wait_ready(server) }

  COMMANDS.each_key do |kind|
    define_method("test_#{kind}_hands_over_what_it_loaded_and_keeps_its_pid") do
      port = free_port
      server = ready(rackup(kind, "-s", "leat", "-p", port, "-o", "127.0.0.1", "-E", "production", "-O", "workers=2",
                            "-O", "threads=1", "config.ru", port: port))
      words = get(server, "/").body.split
      assert_equal [kind[-1], "production", "false"], [words[0][0], words[1], words.last]
      assert_match(/\Aleat: master/, File.read("/proc/#{server.pid}/cmdline"))
      assert_equal 2, workers(server).size
      assert_equal ["127.0.0.1:#{port}"], status(server)["listeners"].map { |one| one["address"] }
      assert_equal 0, stop(server)
    end

    define_method("test_#{kind}_restarts_into_a_generation_from_config_ru") do
      port = free_port
      server = ready(rackup(kind, "-s", "leat", "-p", port, "-E", "production", "-O", "workers=1", port: port))
      app "generation = 'second'\n#{SAYS.sub("words = [", "words = [generation, ")}"
      with_witness(server) do
        out, code = leat("restart")
        assert_equal 0, code, out
      end
      assert_match(/\Asecond \S+ production \S+  true\z/, get(server, "/").body, "nothing that was meant for this process alone is left")
      eventually(10, "the former worker is gone") { pool(server)["workers"].map { |worker| worker["generation"] } == [2] }
      assert_equal 0, stop(server, "INT")
    end

    define_method("test_#{kind}_takes_leat_when_it_is_required") do
      port = free_port
      server = ready(rackup(kind, "-p", port, libraries: ["leat"], port: port))
      assert_equal "200", get(server, "/").code
    end
  end

  def test_the_file_wins_over_rackup_s_own_port_and_the_user_over_the_file
    from_file, from_user = free_port, free_port
    config "listen: #{from_file}\nthreads: 1\n"
    server = ready(rackup("rack3", "-s", "leat", port: from_file))
    assert_match(/ false\z/, get(server, "/").body)
    stop(server)
    server = ready(rackup("rack3", "-s", "leat", "-p", from_user, port: from_user))
    assert_equal "200", get(server, "/").code
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", from_file) }
  end

  def test_the_variable_port_is_the_server_s
    port = free_port
    config %(listen: [#{free_port}, "unix:web.sock"]\n)
    server = ready(rackup("rack3", "-s", "leat", env: { "PORT" => port.to_s }, port: port))
    assert_equal "200", get(server, "/").code
    assert File.socket?(File.join(@dir, "web.sock"))
  end

  def test_the_pid_file_holds_the_server_and_goes_with_it
    port = free_port
    server = ready(rackup("rack3", "-s", "leat", "-p", port, "-P", "run.pid", port: port))
    assert_equal server.pid, File.read(File.join(@dir, "run.pid")).to_i
    Process.kill("KILL", workers(server).first)
    eventually { get(server, "/").code == "200" }
    assert_equal server.pid, File.read(File.join(@dir, "run.pid")).to_i, "a worker that ends leaves it"
    assert_equal 0, stop(server)
    refute_path_exists File.join(@dir, "run.pid")
  end

  def test_another_file_is_loaded_again_at_a_restart
    app 'run(proc { |_env| [200, {}, ["admin"]] })', path: "admin.ru"
    port = free_port
    server = ready(rackup("rack3", "-s", "leat", "-p", port, "-E", "production", "admin.ru", port: port))
    assert_equal "admin", get(server, "/").body
    out, code = leat("restart")
    assert_equal 0, code, out
    assert_equal "admin", get(server, "/").body
  end

  def test_in_the_background_it_writes_to_its_log
    FileUtils.mkdir_p(File.join(@dir, "log"))
    port = free_port
    parent = rackup("rack3", "-s", "leat", "-p", port, "-P", "run.pid", "-D", port: port)
    assert_equal 0, wait_exit(parent.pid)
    eventually(20, "it is ready") { File.exist?(File.join(@dir, "log/leat.log")) && leat("healthcheck", "-P", "run.pid").last.zero? }
    assert_equal "200", get(parent, "/").code
    assert_match(/ready: PID \d+/, File.read(File.join(@dir, "log/leat.log")))
    assert_equal 0, leat("stop", "-P", "run.pid").last
  end

  def test_an_application_that_cannot_be_loaded_ends_the_process_with_the_reason
    app "raise 'no database here'"
    server = rackup("rack3", "-s", "leat", "-p", free_port)
    assert_equal 1, wait_exit(server.pid)
    assert_match(/config\.ru:1.*no database here/, server.output)
  end

  def test_in_a_thread_it_says_why_it_cannot
    out, = Open3.capture2e(clean_env, RbConfig.ruby, "-I#{ROOT}/lib", "-e", <<~RUBY, chdir: @dir)
      require "rack"
      require "rackup"
      begin
        Thread.new { Rackup::Handler.get("leat").run(proc {}, Port: 1) }.tap { |it| it.report_on_exception = false }.join
      rescue => error
        puts error.message
      end
    RUBY
    assert_match(/cannot run in a thread/, out)
  end
end
