# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "digest"
require "zlib"

# Files that an application names: to_path, X-Sendfile, X-Accel-Redirect.
class SendfileTest < ServerCase
  APP = <<~'RUBY'
    class Keeper < File
      def close
        File.write("closed", "1\n", mode: "a")
        super
      end
    end
    use Rack::Sendfile
    run(proc { |env|
      type = { "content-type" => "application/octet-stream" }
      path = File.expand_path(env["QUERY_STRING"])
      case env["PATH_INFO"]
      when "/path" then [200, type, Keeper.open("big.bin", "rb")]
      when "/x" then [200, type.merge("x-sendfile" => path, "content-encoding" => "gzip", "content-length" => "0"), Keeper.open("big.bin", "rb")]
      when "/coded" then [200, type.merge("x-sendfile" => path, "content-encoding" => "gzip"), []]
      when "/tagged" then [200, type.merge("x-sendfile" => path, "etag" => '"own"'), []]
      when "/named" then [200, { "X-Sendfile" => path }, ["not this"]]
      when "/created" then [201, type.merge("X-SENDFILE" => path), []]
      when "/accel" then [200, { "x-accel-redirect" => env["QUERY_STRING"], "content-disposition" => "attachment", "set-cookie" => "a=b" }, ["not this" * 9000]]
      when "/env" then [200, { "content-type" => "text/plain" }, [env.values_at("sendfile.type", "HTTP_X_SENDFILE_TYPE", "HTTP_X_ACCEL_MAPPING").inspect]]
      else [200, { "content-type" => "text/plain" }, ["app"]]
      end
    })
  RUBY

  def setup
    super
    app APP
    write "big.bin", @data = Random.new(9).bytes(300_000)
  end

  def fetch(server, path, fields = "", method: "GET")
    raw(server, "#{method} #{path} HTTP/1.1\r\nHost: a\r\n#{fields}\r\n", methods: [method]).first
  end

  def test_the_application_is_told_that_it_may
    reply = fetch(start, "/env", "X-Sendfile-Type: X-Accel-Redirect\r\nX-Accel-Mapping: /=/\r\n")
    assert_equal '["X-Sendfile", nil, nil]', reply.body
  end

  def test_ranges_conditions_and_the_true_length_of_every_form
    server = start
    %w[/path /x?big.bin].each do |path|
      whole = fetch(server, path)
      assert_equal [200, @data.bytesize.to_s, nil, nil], [whole.status, *whole.headers.values_at("content-length", "content-encoding", "x-sendfile")], path
      assert_equal Digest::SHA256.hexdigest(@data), Digest::SHA256.hexdigest(whole.body)
      part = fetch(server, path, "Range: bytes=10-19\r\n")
      assert_equal [206, "bytes 10-19/300000", @data[10, 10]], [part.status, part.headers["content-range"], part.body], path
      outside = fetch(server, path, "Range: bytes=999999999-\r\n")
      assert_equal [416, "bytes */300000"], [outside.status, outside.headers["content-range"]], path
      tag = whole.headers["etag"]
      assert_equal 304, fetch(server, path, "If-None-Match: #{tag}\r\n").status
      assert_equal 206, fetch(server, path, "Range: bytes=0-0\r\nIf-Range: #{tag}\r\n").status
      assert_equal 200, fetch(server, path, "Range: bytes=0-0\r\nIf-Range: \"other\"\r\n").status
      head = fetch(server, path, method: "HEAD")
      assert_equal whole.headers.except("date"), head.headers.except("date"), path
    end
    assert_operator File.readlines(File.join(@dir, "closed")).size, :>=, 14
  end

  def test_the_application_s_own_tag_stands_for_the_file
    server = start
    assert_equal 304, fetch(server, "/tagged?big.bin", "If-None-Match: \"own\"\r\n").status
    assert_equal '"own"', fetch(server, "/tagged?big.bin").headers["etag"]
  end

  def test_the_name_in_any_case_and_other_statuses
    write "small.txt", "small"
    write "empty.txt", ""
    server = start
    assert_equal [200, "small", "text/plain"], fetch(server, "/named?small.txt").then { |reply| [reply.status, reply.body, reply.headers["content-type"][/[^;]+/]] }
    assert_equal [201, "small"], fetch(server, "/created?small.txt", "Range: bytes=0-1\r\n").then { |reply| [reply.status, reply.body] }
    assert_equal [200, "small"], fetch(server, "/named?small.txt", "Content-Length: 0\r\n", method: "POST").then { |reply| [reply.status, reply.body] }
    assert_equal [200, "0"], fetch(server, "/named?empty.txt").then { |reply| [reply.status, reply.headers["content-length"]] }
  end

  def test_a_coding_that_the_file_has_is_kept
    write "page.gz", Zlib.gzip("coded")
    reply = fetch(start, "/coded?page.gz")
    assert_equal ["gzip", "coded"], [reply.headers["content-encoding"], Zlib.gunzip(reply.body)]
  end

  def test_what_is_no_file_is_404_and_logged
    File.mkfifo(File.join(@dir, "pipe"))
    Dir.mkdir(File.join(@dir, "folder"))
    server = start
    %w[none pipe folder].each do |name|
      reply = fetch(server, "/named?#{name}")
      assert_equal [404, nil], [reply.status, reply.headers["x-sendfile"]], name
      assert_match(/x-sendfile names no file.*#{name}/, server.output)
    end
  end

  where root?, "root" do
    # What is outside for an application is what its user may not read; the front reads nothing for it.
    def test_a_file_that_the_worker_may_not_read_is_404_and_logged
      write "secret.txt", "secret"
      File.chmod(0o600, File.join(@dir, "secret.txt"))
      File.chmod(0o755, @dir)
      Dir.mkdir(File.join(@dir, "run"), 0o777)
      config "user: nobody\n"
      server = start
      ["secret.txt", "/etc/shadow"].each do |name|
        reply = fetch(server, "/named?#{name}")
        assert_equal [404, nil], [reply.status, reply.headers["x-sendfile"]], name
        refute_match(/secret|root:/, reply.body)
      end
      assert_match(/x-sendfile names no file.*secret\.txt/, server.output)
    end
  end

  def test_internal_files_only_by_the_application
    write "private/a b.txt", "inside"
    write "private/deep/.key", "dot"
    write "outside.txt", "outside"
    File.symlink("../outside.txt", File.join(@dir, "private/link"))
    config "internal: {/protected/: private}\n"
    server = start
    reply = fetch(server, "/accel?/protected/a%20b.txt")
    assert_equal [200, "inside", "attachment", "a=b", nil], [reply.status, reply.body, *reply.headers.values_at("content-disposition", "set-cookie", "x-accel-redirect")]
    assert_equal [206, "ns"], fetch(server, "/accel?/protected/a%20b.txt", "Range: bytes=1-2\r\n").then { |part| [part.status, part.body] }
    assert_equal "dot", fetch(server, "/accel?/protected/deep/.key").body
    ["/protected/none", "/protected/../outside.txt", "/protected/%2e%2e/outside.txt", "/protected/link", "/protected/deep", "/protected/",
     "/else/a", "a", "/protected/%00"].each do |path|
      reply = fetch(server, "/accel?#{path}")
      assert_equal [404, nil, nil], [reply.status, *reply.headers.values_at("x-accel-redirect", "set-cookie")], path
      refute_includes reply.body, "outside"
    end
    assert_match(%r{x-accel-redirect=/else/a lies below no internal root}, server.output)
    assert_match(%r{x-accel-redirect=/protected/none names no file}, server.output)
    assert_equal "app", fetch(server, "/protected/a%20b.txt").body
    assert_equal "app", fetch(server, "/").body, "the worker goes on after a body that nobody wanted"
  end
end
