# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# `public/` before the application.
class FilesTest < ServerCase
  def setup
    super
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["app " + env["PATH_INFO"]]] })'
    write "public/a.txt", "file a"
    write "public/posts.html", "posts page"
    write "public/docs/index.html", "docs index"
  end

  def test_finds_uri_uri_html_and_index_before_the_application
    server = start
    { "/a.txt" => "file a", "/posts" => "posts page", "/docs" => "docs index", "/docs/" => "docs index", "/none" => "app /none" }.each do |path, body|
      assert_equal body, get(server, path).body, path
    end
    assert_equal "app /a.txt", http(server, "/a.txt", method: "POST", body: "").body
  end

  def test_files_have_type_length_and_validators
    server = start
    reply = get(server, "/a.txt")
    assert_match(%r{\Atext/plain}, reply["content-type"])
    assert_equal "6", reply["content-length"]
    assert reply["last-modified"]
    assert_equal "304", get(server, "/a.txt", "If-None-Match" => reply["etag"]).code
    assert_equal "304", get(server, "/a.txt", "If-Modified-Since" => reply["last-modified"]).code
    assert_equal "200", get(server, "/a.txt", "If-None-Match" => '"other"', "If-Modified-Since" => reply["last-modified"]).code
    head = http(server, "/a.txt", method: "HEAD")
    assert_equal "6", head["content-length"]
    assert_nil head.body
  end

  def test_a_rewritten_file_has_a_new_etag
    server = start
    first = get(server, "/a.txt")["etag"]
    write "public/a.txt", "file b"
    eventually(2) { get(server, "/a.txt", "If-None-Match" => first).body == "file b" }
  end

  def test_nothing_outside_the_root_by_any_spelling
    write "secret.txt", "classified"
    File.symlink("../secret.txt", File.join(@dir, "public/link.txt"))
    File.symlink("/etc/hostname", File.join(@dir, "public/host.txt"))
    server = start
    ["/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/docs/../../secret.txt", "//etc/hostname", "/link.txt", "/host.txt",
     "/a.txt%00", "/./../secret.txt", "/%252e%252e/secret.txt"].each do |path|
      reply = raw(server, "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n").first
      refute_includes reply.body, "classified", path
      refute_equal File.read("/etc/hostname"), reply.body, path
    end
  end

  def test_a_link_that_leads_where_it_may_not_is_404_and_one_line
    File.symlink("/etc/hostname", File.join(@dir, "public/host"))
    server = start
    2.times { assert_equal "404", get(server, "/host").code }
    lines = server.output.lines.grep(%r{file=\S+/public/host })
    assert_equal 1, lines.size, server.output
    assert_match(%r{leads to /etc/hostname, which `links` does not allow; it is not sent}, lines.first)
    assert_equal "app /.env", get(server, "/.env").body, "what is never sent is the application's"
  end

  def test_dot_names_and_sources_are_never_sent
    %w[.env .git/config app.rb~ x.rb y.php config.ru].each { |name| write "public/#{name}", "leak" }
    write "public/.well-known/x", "known"
    server = start
    %w[/.env /.git/config /app.rb~ /x.rb /y.php /config.ru /%2eenv].each { |path| refute_equal "leak", get(server, path).body, path }
    assert_equal "known", get(server, "/.well-known/x").body
  end

  def test_names_are_decoded_exactly_once
    names = ["a b.html", "café.txt", "100%.txt", "100%25.txt", "x#y.css", "plus+.js"]
    [*names, "..z.txt"].each { |name| write "public/#{name}", name }
    server = start
    assert_equal "app /..z.txt", get(server, "/..z.txt").body, "a dot name is not sent"
    names.each do |name|
      path = "/" + name.gsub(/[^a-zA-Z0-9.+]/) { |char| char.bytes.map { |byte| format("%%%02X", byte) }.join }
      assert_equal name.b, get(server, path).body.b, path
    end
  end

  def test_a_large_file_is_whole
    data = Random.new(3).bytes(9_000_001)
    write "public/big.bin", data
    server = start
    assert_equal data, get(server, "/big.bin").body.b
  end
end
