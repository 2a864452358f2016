# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "digest"
require "zlib"

# Texts of applications, coded as the client wishes.
class CompressTest < ServerCase
  APP = <<~'RUBY'
    PAGE = (1..2000).map { |i| "<li>Item #{i} of a list</li>\n" }.join
    run(proc { |env|
      html = { "content-type" => "text/html; charset=utf-8" }
      case env["PATH_INFO"]
      when "/page" then [200, html.merge("etag" => '"v1"', "set-cookie" => "a=b", "vary" => "Cookie"), [PAGE]]
      when "/parts" then [200, html, Enumerator.new { |out| 30.times { out << PAGE } }]
      when "/large" then [200, { "content-type" => "text/plain", "content-length" => "24000000" }, Enumerator.new { |out| r = Random.new(7); 200.times { out << r.bytes(60_000).unpack1("H*") } }]
      when "/tiny" then [200, html, ["tiny"]]
      when "/fixed" then [200, html.merge("cache-control" => "no-transform"), [PAGE]]
      when "/image" then [200, { "content-type" => "image/png" }, [PAGE]]
      when "/coded" then [200, html.merge("content-encoding" => "x-own"), [PAGE]]
      when "/part" then [206, html.merge("content-range" => "bytes 0-9/#{PAGE.bytesize}"), [PAGE]]
      when "/short" then [200, html.merge("content-length" => (PAGE.bytesize + 1).to_s), [PAGE]]
      when "/error" then [500, html, [PAGE]]
      when "/empty" then [204, {}, []]
      when "/live" then [200, html, Enumerator.new { |out| 5.times { |i| out << "part #{i}\n"; sleep 0.2 } }]
      else [200, html, [PAGE]]
      end
    })
  RUBY

  def setup
    super
    app APP
  end

  # Over all codings, by a client that knows them; gzip is what every one of them has.
  def test_every_coding_gives_the_same_bytes
    server = start
    %w[/page /parts /large /live].each do |path|
      plain = raw(server, "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n").first
      next assert plain.complete if path == "/live"

      %w[gzip br zstd].each do |coding|
        out, = Open3.capture2("curl", "-s", "-m", "30", "--compressed", "-H", "Accept-Encoding: #{coding}", "http://127.0.0.1:#{server.port}#{path}", binmode: true)
        assert_equal Digest::SHA256.hexdigest(plain.body), Digest::SHA256.hexdigest(out), "#{path} in #{coding}"
      end
    end
  end

  def coded(server, path, accept = "gzip", method: "GET", fields: "")
    raw(server, "#{method} #{path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: #{accept}\r\n#{fields}\r\n", methods: [method]).first
  end

  def test_the_head_says_what_was_done
    server = start
    reply = coded(server, "/page")
    assert_equal ["gzip", 'W/"v1"', "Cookie, accept-encoding", "a=b"], reply.headers.values_at("content-encoding", "etag", "vary", "set-cookie")
    refute_equal coded(server, "/page", "identity").headers["content-length"], reply.headers["content-length"]
    assert_includes Zlib.gunzip(reply.body), "Item 2000"
    head = coded(server, "/page", method: "HEAD")
    assert_equal ["gzip", 'W/"v1"', "Cookie, accept-encoding", nil], head.headers.values_at("content-encoding", "etag", "vary", "content-length")
    plain = coded(server, "/page", "identity")
    assert_equal [nil, '"v1"', "Cookie, accept-encoding", plain.body.bytesize.to_s], plain.headers.values_at("content-encoding", "etag", "vary", "content-length")
    assert_equal "gzip", coded(server, "/error").headers["content-encoding"]
  end

  def test_the_client_chooses
    server = start
    { "gzip" => "gzip", "GZIP;q=0.5" => "gzip", "gzip;q=0" => nil, "identity, gzip;q=0.5" => nil, "deflate" => nil, "" => nil, "*;q=0" => nil,
      "br;q=0.1, gzip;q=0.2" => "gzip", "br" => "br", "zstd" => "zstd", "gzip;q=1.0, *;q=0" => "gzip" }.each do |accept, expected|
      assert_equal [expected], [coded(server, "/page", accept).headers["content-encoding"]], accept
    end
    assert_includes %w[br zstd gzip], coded(server, "/page", "*").headers["content-encoding"]
  end

  def test_what_gains_nothing_or_must_not_change_stays_as_it_is
    server = start
    reply = coded(server, "/tiny")
    assert_equal [nil, "4", "tiny"], [reply.headers["content-encoding"], reply.headers["content-length"], reply.body]
    %w[/fixed /image /part].each do |path|
      reply = coded(server, path)
      assert_equal [nil, nil], reply.headers.values_at("content-encoding", "vary"), path
      assert_includes reply.body, "Item 2000"
    end
    assert_equal "x-own", coded(server, "/coded").headers["content-encoding"]
    empty = coded(server, "/empty")
    assert_equal [204, nil], [empty.status, empty.headers["content-encoding"]]
  end

  def test_a_part_of_a_stream_is_there_at_once
    server = start
    connect(server) do |socket|
      socket.write("GET /live HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
      inflater = Zlib::Inflate.new(31)
      head = +""
      head << socket.readpartial(1) until head.end_with?("\r\n\r\n")
      assert_match(/content-encoding: gzip/, head)
      text = +""
      5.times do |index|
        until text.include?("part #{index}\n")
          size = Integer(socket.gets, 16)
          text << inflater.inflate(socket.read(size))
          socket.read(2)
        end
        refute_includes text, "part #{index + 1}\n", "parts come one by one"
      end
    end
  end

  def test_an_answer_that_ends_early_is_visibly_cut
    server = start
    refute coded(server, "/short").complete
  end

  def test_a_slow_client_gets_all_of_a_large_answer
    server = start("-w", "1", "-t", "1")
    plain = raw(server, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n").first.body
    connect(server) do |socket|
      socket.write("GET /large HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
      socket.wait_readable(10)
      assert_equal "200", get(server, "/tiny").code, "the only thread is free while the client reads"
      assert_equal Digest::SHA256.hexdigest(plain), Digest::SHA256.hexdigest(Zlib.gunzip(read_reply(socket).body))
    end
  end

  def test_off_for_all_or_for_a_site
    config "compress: off\nsites:\n- host: a\n  root: off\n  pool: app\n- {host: b, root: off, pool: app, compress: on}\npools: {app: {app: .}}\n"
    server = start
    { "a" => nil, "b" => "gzip" }.each do |host, expected|
      reply = raw(server, "GET /page HTTP/1.1\r\nHost: #{host}\r\nAccept-Encoding: gzip\r\n\r\n").first
      assert_equal [expected], [reply.headers["content-encoding"]], host
      assert_equal expected.nil?, reply.headers["etag"] == '"v1"'
    end
  end
end
