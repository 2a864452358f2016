# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Access log and event lines.
class LogsTest < ServerCase
  def setup
    super
    app 'run(proc { |env| sleep 0.02; [env["PATH_INFO"] == "/201" ? 201 : 200, {"content-type" => "text/plain"}, ["hello"]] })'
  end

  def lines(path) = File.exist?(File.join(@dir, path)) ? File.readlines(File.join(@dir, path), chomp: true) : []

  def test_combined_has_the_form_that_tools_read
    config "access_log: {file: log/access.log}\n"
    server = start
    get(server, "/201?x=1", "User-Agent" => "te\"st", "Referer" => "http://r/")
    line = eventually(4) { lines("log/access.log").first }
    assert_match(%r{\A127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /201\?x=1 HTTP/1\.1" 201 5 "http://r/" "te\\(x22|")st"}, line)
  end

  def test_json_has_the_time_of_each_stage
    config "access_log: {file: log/access.log, format: json}\n"
    server = start
    get(server, "/")
    entry = JSON.parse(eventually(4) { lines("log/access.log").first })
    assert_equal ["GET", "/", 200], entry.values_at("method", "path", "status")
    %w[head body queue app write].each { |stage| assert_kind_of Numeric, entry["#{stage}_ms"], stage }
    assert_operator entry["app_ms"], :>=, 15
  end

  def test_reopen_follows_a_rotated_file
    config "access_log: {file: log/access.log}\nlog: log/leat.log\npid: leat.pid\n"
    server = start(wait: false)
    eventually(30) { get(server, "/1").code == "200" rescue false }
    eventually(4) { lines("log/access.log").any? }
    File.rename(File.join(@dir, "log/access.log"), File.join(@dir, "log/access.log.1"))
    out, code = leat("reopen", "-P", "leat.pid")
    assert_equal 0, code, out
    get(server, "/2")
    eventually(4, "the new file is written") { lines("log/access.log").any? { |line| line.include?("GET /2 ") } }
  end

  def test_a_refused_and_a_departed_request_are_logged
    config "access_log: {file: log/access.log}\n"
    server = start
    raw(server, "GET / HTTP/9.9\r\nHost: a\r\n\r\n")
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("POST /cut HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
    socket.close
    eventually(4, "499 in the log") { lines("log/access.log").any? { |line| line.include?('"POST /cut HTTP/1.1" 499') } }
    assert(lines("log/access.log").any? { |line| line.include?(" 505 ") })
  end
end
