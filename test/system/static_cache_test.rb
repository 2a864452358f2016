# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "zlib"

# Files that come, go and change while they are asked for: the page cache, precompressed forms, maintenance.
class StaticCacheTest < ServerCase
  def setup
    super
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["app " + env["PATH_INFO"]]] })'
    write "public/a.txt", "file a"
  end

  def body(server, path, headers = {}) = get(server, path, headers).body

  # As others put them into place: whole at once.
  def rename_to(path, text)
    File.rename(write("#{path}.new", text), File.join(@dir, path))
  end

  def test_cached_pages_come_and_go_at_once
    server = start
    20.times do |round|
      assert_equal "app /posts", body(server, "/posts")
      assert_equal "app /", body(server, "/")
      write "public/posts.html", "posts #{round}"
      write "public/index.html", "home #{round}"
      assert_equal "posts #{round}", body(server, "/posts")
      assert_equal "home #{round}", body(server, "/")
      rename_to "public/posts.html", "again #{round}"
      assert_equal "again #{round}", body(server, "/posts")
      File.delete(File.join(@dir, "public/posts.html"), File.join(@dir, "public/index.html"))
    end
  end

  def test_cached_pages_answer_get_and_head_without_a_query
    write "public/posts.html", "page"
    write "public/index.html", "home"
    server = start
    assert_equal "4", http(server, "/posts", method: "HEAD")["content-length"]
    %w[POST PUT PATCH DELETE OPTIONS].each { |method| assert_equal "app /posts", http(server, "/posts", method: method, body: "").body, method }
    assert_equal "app /posts", body(server, "/posts?page=2")
    assert_equal "app /", body(server, "/?q=1")
    assert_equal "page", body(server, "/posts?"), "an empty query is none"
    assert_equal "file a", body(server, "/a.txt?v=3")
    assert_equal "page", body(server, "/posts.html?v=3"), "by its own name it is a file like others"
    assert_equal "page", body(server, "/posts"), "and nothing is remembered of that"
  end

  def test_a_site_may_have_queries_answered
    write "public/posts.html", "page"
    config "page_cache_query: true\n"
    assert_equal "page", body(start, "/posts?page=2")
  end

  def test_a_site_of_files_alone_answers_any_query
    write "site/index.html", "home"
    write "site/about.html", "about"
    config "sites: [{root: site}]\n"
    File.delete(File.join(@dir, "config.ru"))
    server = start
    assert_equal %w[home about], [body(server, "/?utm=1"), body(server, "/about?x=1")]
  end

  def test_a_page_that_is_being_written_is_not_there_yet
    server = start
    path = File.join(@dir, "public/posts.html")
    File.open(path, "w") do |file|
      assert_equal "app /posts", body(server, "/posts")
      file.write("half")
      file.flush
      assert_equal "app /posts", body(server, "/posts")
      assert_equal "app /posts.html", body(server, "/posts.html")
      file.write(" and half")
    end
    assert_equal "half and half", body(server, "/posts")
    File.open(path, "w") do |file|
      file.write("new")
      file.flush
      assert_equal "app /posts", body(server, "/posts")
    end
    assert_equal "new", body(server, "/posts")
  end

  # The writer does it as the page cache of Rails does: open, truncate, write. Nobody may see a part.
  def test_no_reader_ever_sees_half_a_page
    server = start
    pages = [60_000, 5_000].map.with_index { |size, index| (index.to_s * size) }
    path = File.join(@dir, "public/posts.html")
    done = false
    writer = Thread.new do
      until done
        pages.each { |page| File.binwrite(path, page) }
        File.delete(path)
      end
    end
    seen = Hash.new(0)
    connect(server) do |socket|
      400.times do
        socket.write("GET /posts HTTP/1.1\r\nHost: a\r\n\r\n")
        reply = read_reply(socket)
        seen[pages.include?(reply.body) || reply.body == "app /posts" ? :whole : reply.body.bytesize] += 1
        break unless reply.complete
      end
    end
    assert_equal [:whole], seen.keys
  ensure
    done = true
    writer&.join
  end

  # F11: whole and old, or short; never a mixture.
  def test_a_file_that_changes_while_it_is_sent
    size = 30 << 20
    old, new = "o" * size, "n" * size
    path = File.join(@dir, "public/big.bin")
    server = start("-e", "production")
    changes = {
      "rename" => -> { rename_to("public/big.bin", new) }, "delete" => -> { File.delete(path) }, "chmod" => -> { File.chmod(0, path) },
      "append" => -> { File.write(path, "more", mode: "a") }, "truncate" => -> { File.truncate(path, 100) },
      "rewrite" => -> { File.write(path, new) }, "overwrite" => -> { File.open(path, "r+") { |file| file.write(new) } },
      "longer" => -> { File.write(path, new + "n") }
    }
    changes.each do |name, change|
      FileUtils.rm_f(path)
      write "public/big.bin", old
      etag = http(server, "/big.bin", method: "HEAD")["etag"]
      connect(server) do |socket|
        socket.write("GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        socket.wait_readable(10)
        change.call
        head, _, got = (socket.read rescue "").partition("\r\n\r\n")
        assert_includes head, etag, name
        if %w[rename delete chmod append].include?(name)
          assert_equal [size, true], [got.bytesize, got == old], name
        else
          assert_operator got.bytesize, :<, size, name
        end
      end
      assert_equal "200", get(server, "/a.txt").code
    end
  end

  def coded(server, path, accept, fields = "")
    raw(server, "GET #{path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: #{accept}\r\n#{fields}\r\n").first
  end

  def test_a_file_without_neighbours_goes_out_as_it_is
    write "public/plain.txt", text = "many words " * 2000
    reply = raw(start, "GET /plain.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip, br\r\n\r\n").first
    assert_equal [200, nil, nil, text.bytesize.to_s, text], [reply.status, *reply.headers.values_at("content-encoding", "vary", "content-length"), reply.body]
  end

  def test_neighbours_by_what_the_client_accepts
    write "public/app.js", "plain " * 1000
    write "public/app.js.gz", gzip = Zlib.gzip("plain " * 1000)
    write "public/app.js.br", "stands for br"
    write "public/app.js.zst", "stands for zstd"
    server = start
    { "gzip" => ["gzip", gzip], "br" => ["br", "stands for br"], "zstd" => ["zstd", "stands for zstd"], "gzip, br, zstd" => ["br", "stands for br"],
      "gzip;q=1, br;q=0.5" => ["gzip", gzip], "*" => ["br", "stands for br"], "" => [nil, "plain " * 1000], "identity" => [nil, "plain " * 1000],
      "gzip;q=0" => [nil, "plain " * 1000], "identity;q=0, gzip" => ["gzip", gzip], "identity;q=1, gzip;q=0.1" => [nil, "plain " * 1000],
      "deflate" => [nil, "plain " * 1000] }.each do |accept, (coding, bytes)|
      reply = coded(server, "/app.js", accept)
      assert_equal [coding, "accept-encoding", bytes.b], [*reply.headers.values_at("content-encoding", "vary"), reply.body.b], accept
      assert_match(/javascript/, reply.headers["content-type"])
    end
    assert_equal 4, ["", "gzip", "br", "zstd"].map { |accept| coded(server, "/app.js", accept).headers["etag"] }.uniq.size
    assert_nil coded(server, "/a.txt", "gzip").headers["vary"]
  end

  def test_ranges_and_conditions_are_those_of_the_form
    write "public/app.js", "0123456789" * 10
    write "public/app.js.gz", gzip = Zlib.gzip("0123456789" * 10)
    server = start
    plain, small = ["identity", "gzip"].map { |accept| coded(server, "/app.js", accept).headers["etag"] }
    part = coded(server, "/app.js", "gzip", "Range: bytes=2-5\r\nIf-Range: #{small}\r\n")
    assert_equal [206, "gzip", "bytes 2-5/#{gzip.bytesize}", gzip[2, 4].b], [part.status, *part.headers.values_at("content-encoding", "content-range"), part.body.b]
    other = coded(server, "/app.js", "gzip", "Range: bytes=2-5\r\nIf-Range: #{plain}\r\n")
    assert_equal [200, gzip.b], [other.status, other.body.b], "of another form no part is sent"
    assert_equal [206, "2345"], coded(server, "/app.js", "identity", "Range: bytes=2-5\r\nIf-Range: #{plain}\r\n").then { |reply| [reply.status, reply.body] }
    same = coded(server, "/app.js", "gzip", "If-None-Match: #{small}\r\n")
    assert_equal [304, "accept-encoding", small, nil], [same.status, *same.headers.values_at("vary", "etag", "content-encoding")]
    assert_equal 200, coded(server, "/app.js", "gzip", "If-None-Match: #{plain}\r\n").status
    assert_equal 200, coded(server, "/app.js", "gzip", "Range: bytes=0-0,2-2\r\n").status
  end

  def test_neighbours_of_cached_pages_come_and_go_and_never_lag_behind
    path = File.join(@dir, "public/posts.html")
    server = start
    3.times do |round|
      File.utime(Time.now, Time.now - 10, "#{path}.gz") if File.exist?("#{path}.gz")
      write "public/posts.html", "page #{round}"
      assert_equal "page #{round}", coded(server, "/posts", "gzip").body, "an older form does not count"
      write "public/posts.html.gz", Zlib.gzip("page #{round}")
      eventually(3, "the form is found") { coded(server, "/posts", "gzip").headers["content-encoding"] == "gzip" }
      assert_equal "page #{round}", Zlib.gunzip(coded(server, "/posts", "gzip").body)
      File.open("#{path}.gz", "r+") do |file|
        file.write("half")
        file.flush
        assert_equal "page #{round}", coded(server, "/posts", "gzip").body, "one that is being written does not count"
      end
      File.delete("#{path}.gz") if round == 1
      assert_equal "page #{round}", coded(server, "/posts", "gzip").body if round == 1
    end
    FileUtils.rm_f([path, "#{path}.gz"])
    assert_equal "app /posts", coded(server, "/posts", "gzip").body
  end

  def test_maintenance_answers_all_but_files
    server = start
    3.times do
      assert_equal "app /posts", body(server, "/posts")
      page = write("public/system/maintenance.html", "<h1>back soon</h1>")
      %w[GET POST DELETE].each do |method|
        reply = http(server, "/posts", method: method, body: method == "POST" ? "x" : nil)
        assert_equal ["503", "<h1>back soon</h1>"], [reply.code, reply.body], method
        assert_match(/\A\d+\z/, reply["retry-after"])
        assert_match(%r{\Atext/html}, reply["content-type"])
        assert_equal "no-store", reply["cache-control"]
      end
      assert_equal "503", http(server, "/posts", method: "HEAD").code
      assert_equal "503", get(server, "/posts", "Range" => "bytes=0-3").code
      assert_equal "file a", body(server, "/a.txt")
      File.delete(page)
    end
    assert_equal "app /posts", http(server, "/posts", method: "POST", body: "x").body
    assert_nil get(server, "/posts")["retry-after"]
  end

  # public/system is a link into shared/ on many machines.
  def test_maintenance_through_a_link
    FileUtils.mkdir_p(["releases/1", "shared/system"].map { |path| File.join(@dir, path) })
    FileUtils.mv(%w[config.ru public].map { |path| File.join(@dir, path) }, File.join(@dir, "releases/1"))
    File.symlink("../../../shared/system", File.join(@dir, "releases/1/public/system"))
    File.symlink("releases/1", File.join(@dir, "current"))
    server = start(dir: File.join(@dir, "current"))
    assert_equal "app /", body(server, "/")
    write "shared/system/maintenance.html", "soon"
    assert_equal "soon", body(server, "/")
    File.delete(File.join(@dir, "shared/system/maintenance.html"))
    assert_equal "app /", body(server, "/")
  end
end
