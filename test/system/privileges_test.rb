# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# What an application may reach of the server that runs it, and of the application beside it: nothing.
class PrivilegesTest < ServerCase
  # Tries one thing and says what came of it.
  BAD = <<~'RUBY'
    require "fiddle"
    require "json"
    require "socket"
    PTRACE = Fiddle::Function.new(Fiddle::Handle::DEFAULT["ptrace"], [Fiddle::TYPE_LONG, Fiddle::TYPE_LONG, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_LONG)
    ATTACH, DETACH = 16, 17
    TRY = proc { |&block| block.call && "may" rescue $!.class.name }
    # A question of a worker thread to the front's descriptor socket: kind, slot, turn, thread.
    ASK = proc do |path, kind|
      socket = Socket.new(:UNIX, :SEQPACKET)
      socket.connect(Addrinfo.unix(path))
      socket.send([kind, 0, 0, 0].pack("L4"), 0)
      socket.wait_readable(2) or next "silence"
      answer, _, _, *control = socket.recvmsg(100, 0)
      control.any? ? "a descriptor" : answer.unpack1("l").to_s
    end
    run(proc { |env|
      asked = JSON.parse(env["rack.input"].read)
      seen = case env["PATH_INFO"]
             when "/signal" then asked.map { |pid| TRY.call { Process.kill(0, pid) } }
             when "/trace" then asked.map { |pid| PTRACE.call(ATTACH, pid, 0, 0) == -1 ? "no" : PTRACE.call(DETACH, pid, 0, 0) && "may" }
             when "/read" then asked.map { |path| TRY.call { File.open(path, "rb") { |file| file.read(100).to_s.size.positive? or raise IOError } } }
             when "/list" then asked.map { |path| TRY.call { Dir.children(path) } }
             when "/connect" then asked.map { |path| TRY.call { UNIXSocket.new(path).close || true } }
             when "/ask" then asked.map { |path| [1, 3].map { |kind| ASK.call(path, kind) rescue $!.class.name } }
             when "/mine"
               Dir.children("/proc/self/fd").filter_map do |number|
                 target = File.readlink("/proc/self/fd/#{number}") rescue next
                 listens = target.start_with?("socket") && (BasicSocket.for_fd(number.to_i).tap { |socket| socket.autoclose = false }.getsockopt(:SOCKET, :ACCEPTCONN).bool rescue false)
                 "#{target}#{" listens" if listens}"
               end
             end
      [200, {"content-type" => "application/json"}, [JSON.generate([Process.uid, Process.groups, seen])]]
    })
  RUBY

  where root?, "root" do
    def setup
      super
      File.chmod(0o755, @dir)
      app 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["good"]] })', path: "good/config.ru"
      app BAD, path: "bad/config.ru"
      config <<~YAML
        user: games
        group: games
        pools: {good: {app: good, user: daemon, workers: 1}, bad: {app: bad, user: nobody, workers: 1, threads: 1}}
        sites: [{pool: good}, {host: bad, pool: bad}]
      YAML
      write("key.pem", "secret")
      File.chmod(0o600, File.join(@dir, "key.pem"))
      @server = start("-e", "production")
      eventually(20) { workers(@server).size == 2 }
      @bad, @good = %w[bad good].map { |name| workers(@server).find { |pid| File.read("/proc/#{pid}/cmdline").include?(name) } }
      @molds = %w[bad good].map { |name| processes(@server, "mold").find { |pid| File.read("/proc/#{pid}/cmdline").include?(name) } }
      @others = [@server.pid, *processes(@server, "front"), @good, @molds.last]
    end

    def try(what, list)
      reply = http(@server, "/#{what}", method: "POST", headers: { "Host" => "bad" }, body: JSON.generate(list))
      assert_equal "200", reply.code, reply.body
      JSON.parse(reply.body)
    end

    def test_other_processes_can_be_neither_signalled_traced_nor_read
      uid, groups, seen = try("signal", @others)
      assert_equal [65_534, ["Errno::EPERM"]], [uid, seen.uniq]
      refute_includes groups, 0
      assert_equal ["no"], try("trace", @others).last.uniq
      files = @others.flat_map { |pid| %w[mem environ maps].map { |name| "/proc/#{pid}/#{name}" } }
      assert_equal [], try("read", files).last.grep("may")
      folders = @others.flat_map { |pid| %w[fd map_files].map { |name| "/proc/#{pid}/#{name}" } }
      assert_equal ["Errno::EACCES"], try("list", folders).last.uniq
      assert_equal "good", get(@server, "/").body
    end

    def test_files_and_sockets_of_the_server_are_closed_to_it
      assert_equal ["Errno::EACCES"], try("read", [File.join(@dir, "key.pem")]).last
      control = Dir.glob("/run/leat/#{@server.pid}.sock")
      refute_empty control
      assert_equal ["Errno::EACCES"], try("connect", control).last.uniq
    end

    # Every pool has a prefix of its own; whoever asks must be the worker that holds the slot.
    def test_descriptors_of_another_pool_are_not_given_away
      sockets = Dir.glob("/run/leat/#{@server.pid}-*").select { |path| File.socket?(path) }
      assert_operator sockets.size, :>=, 2
      answers = try("ask", sockets).last.flatten
      assert_equal [], answers.grep(/descriptor|\A0\z/), answers.inspect
      assert_equal "good", get(@server, "/").body
    end

    def test_it_holds_nothing_of_the_server_but_its_own_ways_to_it
      held = try("mine", []).last
      assert_equal [], held.grep(/listens/)
      assert_equal [], held.grep(/memfd/), "the board is mapped, its file closed"
      assert_equal [], held.grep(%r{leat\.(pid|yml)|\.sock|access})
    end
  end
end
