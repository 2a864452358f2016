# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# What the application finds in env.
class EnvTest < ServerCase
  # Answers with the values of the keys that the query names, as Ruby writes them, and their encodings.
  SHOW = <<~RUBY
    run(proc { |env|
      keys = env["QUERY_STRING"].split("&").first.to_s.split(",")
      keys = env.keys.grep(/\\AHTTP_/) if keys.empty?
      text = keys.map { |key| key + "=" + (key.end_with?("#enc") ? env[key.delete_suffix("#enc")].encoding : env[key]).inspect }.join("\\n")
      [200, {"content-type" => "text/plain"}, [text]]
    })
  RUBY

  def setup
    super
    app SHOW
  end

  def request(fields, target: "/", version: "1.1")
    "GET #{target} HTTP/#{version}\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n"
  end

  def env(server, fields, keys)
    reply = raw(server, request(["Host: a", *fields], target: "/?#{keys.join(',')}")).first
    assert_equal 200, reply.status
    reply.body.lines(chomp: true).to_h { |line| line.split("=", 2) }
  end

  # One application below a prefix and another for the rest, as Rack's own `map` has it.
  def test_an_application_below_a_prefix_has_its_script_name
    write "public/shop/a.css", "a file"
    app <<~RUBY
      require "rack/lint"
      tell = ->(env) { [200, {"content-type" => "text/plain"}, [env["SCRIPT_NAME"] + "|" + env["PATH_INFO"] + "|" + env["REQUEST_URI"]]] }
      use Rack::Lint
      map("/shop") { map("/deep") { run tell }; run tell }
      map("/") { run tell }
    RUBY
    server = start
    { "/shop" => "/shop||", "/shop/" => "/shop|/|", "/shop/a%20b?x" => "/shop|/a%20b|", "/shop/deep/x" => "/shop/deep|/x|",
      "/shopping" => "|/shopping|", "/" => "|/|" }.each do |path, seen|
      assert_equal seen + path, get(server, path).body
    end
    assert_equal "a file", get(server, "/shop/a.css").body
  end

  def test_repeated_fields_are_joined_in_order
    server = start
    seen = env(server, ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 198.51.100.2", "Cookie: a=1", "Cookie: b=2", "X-New: 1", "x-new: 2"],
               %w[HTTP_X_FORWARDED_FOR HTTP_COOKIE HTTP_X_NEW])
    assert_equal '"192.0.2.1, 198.51.100.2"', seen["HTTP_X_FORWARDED_FOR"]
    assert_equal '"a=1; b=2"', seen["HTTP_COOKIE"]
    assert_equal '"1, 2"', seen["HTTP_X_NEW"]
  end

  def test_fields_that_must_be_single_are_refused_when_they_are_not
    server = start
    [["Host: a", "Host: a"], ["Host: a", "Host: b"], ["Host: a", "Content-Length: 1", "Content-Length: 2"],
     ["Host: a", "Content-Type: a/b", "Content-Type: c/d"]].each do |fields|
      reply = raw(server, request(fields)).first
      assert_equal 400, reply.status, fields.inspect
      assert reply.complete
    end
  end

  def test_the_address_of_the_client_is_one_whatever_the_listener
    app <<~RUBY
      require "ipaddr"
      run(proc { |env| [200, {"content-type" => "text/plain"}, [IPAddr.new(env["REMOTE_ADDR"]).to_s + " " + env["HTTP_X_FORWARDED_FOR"].inspect]] })
    RUBY
    config %(listen: ["unix:run/a.sock", "127.0.0.1:#{port = free_port}"]\ntrusted_proxies: [unix, 192.0.2.0/24]\n)
    start(:no_port)
    ask = lambda do |socket, *fields|
      socket.write(request(["Host: x", *fields]))
      read_reply(socket).body
    ensure
      socket.close
    end
    unix = -> { UNIXSocket.new(File.join(@dir, "run/a.sock")) }
    list = "203.0.113.9, 192.0.2.5"
    assert_equal "127.0.0.1 nil", ask.(unix.call)
    assert_equal "203.0.113.9 #{list.inspect}", ask.(unix.call, "X-Forwarded-For: #{list}")
    assert_equal "127.0.0.1 #{list.inspect}", ask.(TCPSocket.new("127.0.0.1", port), "X-Forwarded-For: #{list}", "Remote-Addr: 1.2.3.4")
  end

  def test_names_with_underscores_are_dropped_and_named_in_the_log
    server = start
    fields = ["X_Forwarded_Proto: https", "X-User_Id: 7", "Version: HTTP/1.0", "Proxy: http://192.0.2.1/", "X-Sendfile-Type: X-Accel-Redirect",
              "X-Accel-Mapping: /=/etc/"]
    reply = connect(server) do |socket|
      socket.write(request(["Host: a", *fields]))
      first = read_reply(socket)
      assert first.headers["content-length"]
      socket.write(request(["Host: a"], target: "/?SERVER_PROTOCOL"))
      assert_equal 'SERVER_PROTOCOL="HTTP/1.1"', read_reply(socket).body
      first
    end
    refute_match(/X_FORWARDED_PROTO|USER_ID|HTTP_PROXY|SENDFILE|ACCEL/, reply.body)
    eventually(4, "the log names the field") { server.output.match?(/X-User_Id/i) }
  end

  def test_names_with_underscores_pass_when_asked_for_unless_a_twin_exists
    config "underscore_fields: pass\n"
    server = start
    seen = env(server, ["X_Alone: 1", "X_Twin: evil", "X-Twin: good"], %w[HTTP_X_ALONE HTTP_X_TWIN])
    assert_equal({ "HTTP_X_ALONE" => '"1"', "HTTP_X_TWIN" => '"good"' }, seen)
  end

  def test_unusual_bytes_reach_the_application_untouched
    app 'run(proc { |env| [200, {"content-type" => "text/plain"}, [[env["PATH_INFO"].b, env["QUERY_STRING"], env["PATH_INFO"].encoding == env["QUERY_STRING"].encoding].inspect]] })'
    server = start
    { "/%" => ["/%", ""], "/x?m=a@b.test>" => ["/x", "m=a@b.test>"], "/\"q\"" => ["/\"q\"", ""], "/caf\u00e9".b => ["/caf\xC3\xA9".b, ""],
      "/caf\u00e9?".b => ["/caf\xC3\xA9".b, ""], "/a%2Fb%00" => ["/a%2Fb%00", ""], "/a?b?c=%zz&&" => ["/a", "b?c=%zz&&"],
      "//x//y/../z" => ["//x//y/../z", ""] }.each do |target, parts|
      reply = raw(server, request(["Host: a"], target: target)).first
      assert_equal [200, [*parts, true].inspect], [reply.status, reply.body], target
    end
  end

  def test_control_bytes_and_spaces_in_the_target_get_a_whole_400
    server = start
    ["/a b", "/\x01", "/\x7f", "/\x00x", "/a\tb"].each do |target|
      connect(server) do |socket|
        socket.write(request(["Host: a"], target: target))
        reply = read_reply(socket)
        assert_equal [400, true], [reply.status, reply.complete], target.inspect
        assert_equal "", socket.read, "then the connection ends"
        refute_match(%r{leat/\d|\.rb:\d}, reply.raw + reply.body)
      end
    end
  end

  def test_the_server_name_and_port_are_those_the_client_asked_for
    server = start
    keys = %w[SERVER_NAME SERVER_PORT HTTP_HOST]
    { "Host: example.com" => %w[example.com 80 example.com], "Host: example.com:8080" => %w[example.com 8080 example.com:8080],
      "Host: [::1]:81" => %w[[::1] 81 [::1]:81] }.each do |field, values|
      reply = raw(server, request([field], target: "/?#{keys.join(',')}")).first
      assert_equal keys.zip(values).map { |key, value| "#{key}=#{value.inspect}" }.join("\n"), reply.body, field
    end
    old = raw(server, request([], target: "/?SERVER_NAME,SERVER_PORT", version: "1.0")).first
    assert_match(/SERVER_NAME="(127\.0\.0\.1|localhost)"\nSERVER_PORT="#{server.port}"/, old.body)
  end

  def test_what_rack_and_old_middleware_ask_for_is_there
    server = start
    keys = %w[REQUEST_METHOD SCRIPT_NAME PATH_INFO REQUEST_PATH SERVER_PROTOCOL CONTENT_LENGTH CONTENT_TYPE HTTP_CONTENT_LENGTH
              HTTP_CONTENT_TYPE rack.url_scheme rack.multithread rack.multiprocess rack.run_once HTTPS REMOTE_ADDR REQUEST_URI]
    target = "/p?#{keys.join(',')}"
    reply = raw(server, "POST #{target} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Type: a/b\r\n\r\nabc").first
    values = ["POST", "", "/p", "/p", "HTTP/1.1", "3", "a/b", nil, nil, "http", true, true, false, nil, "127.0.0.1", target]
    assert_equal keys.zip(values).map { |key, value| "#{key}=#{value.inspect}" }, reply.body.lines(chomp: true)
  end

  def test_a_request_has_an_id_and_its_time
    server = start
    seen = env(server, ["X-Request-Id: my-id_1@x", "X-Request-Start: t=1"], %w[HTTP_X_REQUEST_ID HTTP_X_REQUEST_START])
    assert_equal '"my-id_1@x"', seen["HTTP_X_REQUEST_ID"]
    assert_in_delta Time.now.to_f * 1000, seen["HTTP_X_REQUEST_START"][/\A"t=(\d+)"\z/, 1].to_i, 20_000
    ids = [[], ["X-Request-Id: <bad>"]].map { |fields| env(server, fields, %w[HTTP_X_REQUEST_ID])["HTTP_X_REQUEST_ID"] }
    ids.each { |id| assert_match(/\A"[a-zA-Z0-9@_-]{1,255}"\z/, id) }
    refute_equal(*ids)
  end

  def test_env_is_new_for_every_request_and_may_be_changed
    app <<~RUBY
      run(proc { |env|
        env["REQUEST_METHOD"] << "!" unless env["REQUEST_METHOD"].frozen?
        env["PATH_INFO"] << "x"
        env["rack.left"], left = true, env["rack.left"]
        env.delete("SERVER_NAME")
        [200, {"content-type" => "text/plain"}, [[left, env["SERVER_NAME"], env["HTTP_ONCE"], env["PATH_INFO"], env.frozen?].inspect]]
      })
    RUBY
    server = start("-w", "1", "-t", "1")
    connect(server) do |socket|
      [["Once: 1"], []].each do |fields|
        socket.write(request(["Host: a", *fields], target: "/p"))
        assert_equal [nil, nil, fields.empty? ? nil : "1", "/px", false].inspect, read_reply(socket).body
      end
    end
  end
end
