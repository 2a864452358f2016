# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# A build in which a party of the board kills itself at a named point between two steps (src/board/step.def),
# once; for each point a whole server under mixed load must heal, and lose nothing when a worker died.
class PointsTest < ServerCase
  POINTS = File.readlines(File.join(ROOT, "src/board/step.def")).filter_map { |line| line[/\AROW\(\w+, "(\w+)", "(\w+):/] && [$1, $2] }
  FOLDER = File.join(ROOT, "build/crash")
  ABI = RbConfig::CONFIG["ruby_version"]

  APP = <<~'RUBY'
    run(lambda do |env|
      text = {"content-type" => "text/plain"}
      case env["PATH_INFO"]
      when "/slow" then sleep 0.05 and [200, text, ["slow"]]
      when "/stream" then [200, text, Enumerator.new { |list| 20.times { list << "s" * 10_000 } }]
      else [200, text, [env["rack.input"].read.bytesize.to_s]]
      end
    end)
  RUBY

  # The server and the extension with the points in them; made once, from the same sources.
  def self.build
    @build ||= begin
      run!("make", "-C", ROOT, "plain_DIR=build/crash", "plain_CFLAGS=-O0", "EXTRA_CFLAGS=-DLEAT_CRASH_POINTS", "build/crash/leat")
      FileUtils.mkdir_p(place = File.join(FOLDER, "ext"))
      run!(RbConfig.ruby, File.join(ROOT, "ext/leat/extconf.rb"), chdir: place)
      run!("make", "-C", place, "DEFS=-D_GNU_SOURCE -DLEAT_CRASH_POINTS", "optflags=-O0", "V=0")
      FileUtils.mkdir_p(File.join(FOLDER, "lib"))
      FileUtils.cp_r(File.join(ROOT, "lib/leat"), File.join(FOLDER, "lib"))
      FileUtils.mkdir_p(to = File.join(FOLDER, "lib/leat", ABI))
      FileUtils.cp(Dir.glob(File.join(place, "**/leat_ext.so")).first, to)
      true
    end
  end

  def self.run!(*command, **options)
    out, status = Open3.capture2e(*command, **options)
    raise "#{command.join(' ')}:\n#{out}" unless status.success?
  end

  def binary = File.join(FOLDER, "leat")

  POINTS.each do |point, party|
    define_method("test_#{party}_at_#{point}") { heals(point, party) }
  end

  def heals(point, party)
    self.class.build
    app APP
    @mark = write("crashed", "not while it starts")
    server = start("-e", "production", "-w", "2", "-t", "2",
                   env: { "CRASH_AT" => point, "CRASH_ONCE" => @mark, "LEAT_LIB" => File.join(FOLDER, "lib") })
    File.unlink(@mark)
    codes = load(server) { kill_a_worker(server) if point == "slot_requeued" }
    assert reached?, "the point was reached"
    assert_empty codes - ["200"] if party == "worker"
    eventually(5, "it is whole") { workers(server).size == 2 && processes(server, "front").size == 1 }
    eventually(5, "nothing is held") { pool(server).then { |seen| seen["slots"]["busy"].zero? && seen["queue"]["length"].zero? } }
    20.times { assert_equal "200", get(server, "/").code }
    assert_equal 0, stop(server)
  end

  def reached? = File.exist?(@mark)

  # The codes of plain requests, while others stream or leave, until the point was reached and a little longer.
  def load(server)
    running = true
    plain = Array.new(3) { repeat(-> { running }) { get(server, "/").code } }
    others = ["/stream", "/slow"].map { |path| repeat(-> { running }) { get(server, path) } }
    others += [true, false].map { |reads| repeat(-> { running }) { leave(server, reads) } }
    others << repeat(-> { running }) { crowd(server) }
    eventually(10, "the point is reached") { reached? || (yield && false) }
    20.times { get(server, "/") rescue nil }
    running = false
    others.each(&:join)
    plain.flat_map(&:value)
  end

  # So many at once that the front's mark over the slots goes up and down.
  def crowd(server)
    sockets = Array.new(40) { TCPSocket.new("127.0.0.1", server.port) }
    sockets.each { |socket| socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    sockets.each { |socket| read_reply(socket) }
  ensure
    sockets&.each(&:close)
  end

  def repeat(condition)
    Thread.new do
      codes = []
      codes << (yield rescue $!.class.name) while condition.call
      codes
    end
  end

  # A client that asks for much and goes away, at once or after the first bytes.
  def leave(server, reads)
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
    socket.readpartial(1) if reads
    reset(socket)
  end

  def kill_a_worker(server)
    return if (pids = workers(server)).size < 2

    Process.kill("KILL", pids.sample)
  end
end
