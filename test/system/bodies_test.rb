# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "digest"

# Request bodies: where they end, who waits for them, what the application may do with them.
class BodiesTest < ServerCase
  def spool_files(server)
    processes(server, "front").sum do |pid|
      Dir.glob("/proc/#{pid}/fd/*").count { |link| (File.readlink(link) rescue "").end_with?("(deleted)") && !File.readlink(link).start_with?("/memfd:") }
    end
  end

  def test_a_chunked_body_ends_at_its_end_however_it_arrives
    app 'run(proc { |env| body = env["rack.input"].read; [200, {"content-type" => "text/plain"}, ["#{body.bytesize}:#{body} #{env["HTTP_X_SUM"].inspect}"]] })'
    server = start
    bytes = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nabcde\r\n0\r\nX-Sum: 1\r\n\r\n" \
            "GET /two HTTP/1.1\r\nHost: a\r\n\r\n"
    ways = [[bytes], bytes.chars, *(1...bytes.bytesize).map { |cut| [bytes.byteslice(0, cut), bytes.byteslice(cut..)] }]
    ways.each do |parts|
      connect(server) do |socket|
        parts.each { |part| socket.write(part) }
        assert_equal ["5:abcde nil", "0: nil"], Array.new(2) { read_reply(socket).body }, "first part #{parts.first.bytesize}"
        socket.close_write
        assert_equal "", socket.read, "nothing else is answered"
      end
    end
  end

  def test_an_upload_that_ends_early_never_runs
    app 'run(proc { |env| env["rack.input"].read; File.write("called", "1") if env["REQUEST_METHOD"] == "POST"; [200, {}, []] })'
    config "access_log: {file: log/access.log}\n"
    server = start
    heads = { "/length" => "Content-Length: 5000000", "/chunks" => "Transfer-Encoding: chunked" }
    heads.each do |path, field|
      %i[close reset].each do |way|
        socket = TCPSocket.new("127.0.0.1", server.port)
        socket.write("POST #{path} HTTP/1.1\r\nHost: a\r\n#{field}\r\nExpect: 100-continue\r\n\r\n")
        assert_equal 100, read_reply(socket).status, "the head was read"
        socket.write(path == "/chunks" ? "100000\r\n#{'a' * 0x100000}\r\n" : "a" * 3_000_000)
        way == :reset ? reset(socket) : socket.close
      end
    end
    eventually(5, "four lines with 499") { File.exist?(log = File.join(@dir, "log/access.log")) && File.readlines(log).grep(/" 499 /).size == 4 }
    assert_equal "200", get(server, "/").code
    refute File.exist?(File.join(@dir, "called"))
    assert_equal 1, pool(server)["workers"].sum { |worker| worker["requests"] }
    assert_equal 0, spool_files(server)
    refute_match(/\.rb:\d+/, server.output, "no trace in the log")
  end

  # The three slow ones at once, as each takes ten seconds.
  def test_an_upload_may_be_slow_but_not_slower_than_the_rate
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, [env["rack.input"].read.bytesize.to_s]] })'
    server = start("-e", "production", "-w", "1", "-t", "1")
    steady = Thread.new { upload(server, size: 18_000, part: 150, every: 0.1) }
    silent = Thread.new { upload(server, size: 20_000, part: 1000, every: 60) }
    trickle = Thread.new { upload(server, size: 20_000, part: 1, every: 1) }
    longest = 0
    until [steady, silent, trickle].none?(&:alive?)
      begun = now
      assert_equal "200", http(server, "/", method: "POST", body: "x").code
      longest = [longest, now - begun].max
      [steady, silent, trickle].find(&:alive?)&.join(0.05)
    end
    assert_equal [200, "18000"], steady.value.first(2)
    [silent, trickle].each do |thread|
      status, _, seconds = thread.value
      assert_equal 408, status
      assert_in_delta 11, seconds, 3
    end
    assert_operator longest, :<, 1.0, "others are served meanwhile"
  end

  # Sends size bytes in parts and listens in between, so that an early answer ends it.
  def upload(server, size:, part:, every:)
    begun = now
    connect(server) do |socket|
      socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{size}\r\n\r\n")
      sent = 0
      while sent < size
        socket.write("a" * [part, size - sent].min)
        sent += part
        break if sent < size && socket.wait_readable(every)
      end
      reply = read_reply(socket, seconds: 60)
      [reply.status, reply.body, now - begun]
    end
  end

  def test_the_answer_arrives_though_the_application_reads_nothing
    app 'run(proc { |env| env["PATH_INFO"] == "/up" ? [401, {"content-type" => "text/plain"}, ["no"]] : [200, {"content-type" => "text/plain"}, ["yes"]] })'
    server = start
    body = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n" * 60_000
    20.times do
      connect(server) do |socket|
        writer = Thread.new { socket.write("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: #{body.bytesize}\r\n\r\n", body) }
        assert_equal [401, "no"], read_reply(socket).to_a.values_at(0, 2)
        writer.join
        socket.write("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        assert_equal [200, "yes"], read_reply(socket).to_a.values_at(0, 2)
      end
    end
  end

  def test_a_refused_upload_reads_its_answer_before_the_end
    config "limits: {body: 100k}\n"
    app "run(proc { |_env| [200, {}, []] })"
    server = start
    ["Content-Length: 3000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2dc6c0\r\n"].each do |rest|
      5.times do
        connect(server) do |socket|
          writer = Thread.new { socket.write("POST / HTTP/1.1\r\nHost: a\r\n#{rest}", "a" * 3_000_000) rescue nil }
          reply = read_reply(socket)
          assert_equal [413, true], [reply.status, reply.complete]
          writer.join
        end
      end
    end
  end

  # What is left of a small body is no request, and the next one is answered on the same connection.
  def test_a_small_refused_upload_keeps_the_connection
    config "limits: {body: 1k}\nsites: [{host: a, limits: {body: 1k}}]\n"
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, [env["PATH_INFO"]]] })'
    server = start
    body = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
    chunks = "1000\r\n#{body[0, 4096]}\r\n0\r\n\r\n"
    connect(server) do |socket|
      [["a", 413], ["unknown", 404]].product(["Content-Length: #{body.bytesize}\r\n\r\n#{body}", "Transfer-Encoding: chunked\r\n\r\n#{chunks}"]).each do |(host, status), rest|
        next if status == 413 && rest.start_with?("Tr") # found out too late to go on

        socket.write("POST /up HTTP/1.1\r\nHost: #{host}\r\n#{rest}")
        assert_equal [status, true], read_reply(socket).to_a.values_at(0, 4)
        socket.write("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        assert_equal [200, "/next"], read_reply(socket).to_a.values_at(0, 2)
      end
      socket.write("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n")
      assert_equal 413, read_reply(socket).status, "before the body has come"
    end
  end

  def test_input_is_rewindable_binary_and_whole_for_every_size_and_rack
    text = <<~'RUBY'
      run(proc { |env|
        input = env["rack.input"]
        all = input.read
        input.rewind
        three = input.read(3)
        input.rewind
        line = input.gets
        rest = input.each.to_a
        input.rewind
        into = String.new("old")
        input.read(2, into)
        input.read
        seen = [all.bytesize, three, line && line.bytesize, rest.size, all.encoding.to_s, input.read, input.read(1), into, input.read(0)]
        [200, {"content-type" => "text/plain"}, [seen.inspect]]
      })
    RUBY
    ["~> 2.2.0", "~> 3.2.0"].each do |version|
      app text
      write "Gemfile", %(gem "rack", "#{version}"\n)
      FileUtils.rm_f(File.join(@dir, "Gemfile.lock"))
      server = start
      big = "#{'x' * 99}\n" * 80_000
      { "ab\ncd\n" => [6, "ab\n", 3, 1], big => [8_000_000, "xxx", 100, 79_999] }.each do |body, seen|
        first = body.byteslice(0, 2)
        expected = [*seen, "ASCII-8BIT", "", nil, first, ""].inspect
        assert_equal expected, http(server, "/", method: "POST", body: body).body, "rack #{version}, #{body.bytesize} bytes"
        chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n#{body.bytesize.to_s(16)}\r\n#{body}\r\n0\r\n\r\n"
        assert_equal expected, raw(server, chunked).first.body, "chunked"
      end
      assert_equal [0, nil, nil, 0, "ASCII-8BIT", "", nil, "", ""].inspect, get(server, "/").body
    end
  end

  def test_a_body_that_was_not_read_does_not_leak_into_the_next_request
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, [env["PATH_INFO"] == "/read" ? env["rack.input"].read : "-"]] })'
    server = start("-w", "1", "-t", "1")
    [10, 40_000, 400_000].each do |size|
      ask = ->(path, byte) { "POST #{path} HTTP/1.1\r\nHost: a\r\nContent-Length: #{size}\r\n\r\n#{byte * size}" }
      replies = raw(server, ask.("/leave", "a") + ask.("/read", "b") + "GET /read HTTP/1.1\r\nHost: a\r\n\r\n", count: 3)
      assert_equal ["-", "b" * size, ""], replies.map(&:body)
    end
  end
end
