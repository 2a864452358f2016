# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "worker_case"

# What an application finds in env, and in the body of a request.
class RackEnvTest < WorkerCase
  # Answers by a line for each key.
  DUMP = <<~'RUBY'
    run(proc { |env|
      [200, {}, [env.sort.map { |k, v| "#{k}=#{v.is_a?(String) ? "#{v.inspect} #{v.encoding}" : v.class}\n" }.join]]
    })
  RUBY

  def dump(request = "GET /", **options)
    ask(DUMP, request, **options).body.split("\\n").to_h { |line| line.split("=", 2) }
  end

  def test_every_key_of_the_contract_is_there
    env = dump("GET /a%2Fb?x=1")
    assert_equal '"/a%2Fb" UTF-8', env["PATH_INFO"].gsub("\\x5c", "")
    assert_equal %w[rack.errors rack.input rack.multiprocess rack.multithread rack.response_finished rack.run_once
                    rack.url_scheme rack.version], env.keys.grep(/\Arack\.(?!after|early|hijack)/)
    assert_equal '"GET" UTF-8', env["REQUEST_METHOD"]
    %w[SERVER_NAME SERVER_PORT SERVER_PROTOCOL REMOTE_ADDR SCRIPT_NAME QUERY_STRING REQUEST_URI REQUEST_PATH
       SERVER_SOFTWARE GATEWAY_INTERFACE HTTP_HOST HTTP_X_REQUEST_ID].each { |key| assert env.key?(key), key }
    assert_match(/\A"t=\d{13}"/, env["HTTP_X_REQUEST_START"])
    refute env.key?("HTTPS")
  end

  def test_repeated_fields_are_joined_and_the_servers_own_cannot_be_sent
    env = dump("GET /\nx-forwarded-for: 192.0.2.1\nx-forwarded-for: 198.51.100.2\ncookie: a=1\ncookie: b=2\n" \
               "proxy: http://192.0.2.1/\nx-request-id: mine\nx-request-start: t=1\nx-sendfile-type: X-Sendfile")
    assert_equal '"192.0.2.1, 198.51.100.2" UTF-8', env["HTTP_X_FORWARDED_FOR"]
    assert_equal '"a=1; b=2" UTF-8', env["HTTP_COOKIE"]
    assert_equal '"req-1" UTF-8', env["HTTP_X_REQUEST_ID"]
    refute env.key?("HTTP_PROXY") || env.key?("HTTP_X_SENDFILE_TYPE")
  end

  def test_strings_are_binary_unless_they_are_ascii_and_path_and_query_agree
    assert_match(/ASCII-8BIT/, dump("GET /\nx-name: caf\xE9".b)["HTTP_X_NAME"])
    env = dump("GET /caf\xC3\xA9".b)
    assert_match(/ASCII-8BIT/, env["PATH_INFO"])
    assert_equal '"" ASCII-8BIT', env["QUERY_STRING"]
    assert_equal '"" UTF-8', dump["QUERY_STRING"]
  end

  def test_http_version_is_the_protocol_for_old_racks_and_a_clients_field_for_new_ones
    { "2.2" => "HTTP/1.1", "3.0" => "HTTP/1.1", "3.1" => "evil" }.each do |rack, value|
      assert_equal %("#{value}" UTF-8), dump("GET /\nversion: evil", rack: rack)["HTTP_VERSION"], rack
    end
  end

  def test_many_unknown_and_long_names_reach_the_application
    fields = (1..60).map { |n| "x-#{"n" * n}#{n}: #{n}" }
    env = dump("GET /\n#{fields.join("\n")}\nx-#{"y" * 100}: long\nx-#{"y" * 100}: twice")
    assert_equal '"60" UTF-8', env["HTTP_X_#{"N" * 60}60"]
    assert_equal '"long, twice" UTF-8', env["HTTP_X_#{"Y" * 100}"]
  end

  def test_the_body_rewinds_and_reads_as_io_does
    app = <<~'RUBY'
      run(proc { |env| i = env["rack.input"]; a = i.read; i.rewind; b = i.read(3); i.rewind; c = i.gets; d = i.each.to_a
        i.rewind; buffer = +"zzz"; same = i.read(2, buffer).equal?(buffer)
        [200, {}, [[a.bytesize, b, c, d.size, a.encoding.to_s, i.read.size, i.read, i.read(1), i.read(0), same, i.size].inspect]] })
    RUBY
    small = ask(app, "POST /\ncontent-length: 6\n@body ab\\ncd\\n").body
    assert_equal '[6, "ab\\x5cn", "ab\\x5cn", 1, "ASCII-8BIT", 4, "", nil, "", true, 6]', small
    large = ask(app, "POST /\n@file 8000000").body
    assert_match(/\A\[8000000, "abc", .*, 124999, "ASCII-8BIT", 7999998, "", nil, "", true, 8000000\]\z/, large)
    assert_equal '[0, nil, nil, 0, "ASCII-8BIT", 0, "", nil, "", false, 0]', ask(app.sub("read(2, buffer)", "read(2)")).body
  end

  def test_the_body_answers_what_old_libraries_ask_of_a_file
    app = <<~'RUBY'
      run(proc { |env| i = env["rack.input"]
        answers = [i.size, i.external_encoding, i.binmode.equal?(i), i.set_encoding("UTF-8").equal?(i), i.read.encoding, i.close, env["rack.errors"].respond_to?(:flush)]
        [200, {}, [answers.map(&:to_s).inspect]] })
    RUBY
    assert_equal '["6", "ASCII-8BIT", "true", "true", "ASCII-8BIT", "", "true"]', ask(app, "POST /\ncontent-length: 6\n@body ab\\ncd\\n").body
  end

  def test_a_body_without_a_length_has_one_and_no_coding
    env = dump("POST /\ntransfer-encoding: chunked\n@body abc")
    assert_equal '"3" UTF-8', env["CONTENT_LENGTH"]
    refute env.key?("HTTP_TRANSFER_ENCODING") || env.key?("HTTP_CONTENT_LENGTH")
  end

  def test_https_is_said_in_both_ways
    env = dump("GET /\n@flags 1")
    assert_equal ['"on" UTF-8', '"https" UTF-8'], env.values_at("HTTPS", "rack.url_scheme")
  end

  def test_rack_errors_carries_worker_and_request
    run = serve(%(run(proc { |e| e["rack.errors"].puts("one"); e["rack.errors"].write("two"); e["rack.errors"].flush; [200, {}, []] })), "GET /")
    assert_match(/^worker \d+ id=req-1 one\nworker \d+ id=req-1 two$/, run.log)
  end

  # Rack::Lint looks at env, input, errors, status, headers and body.
  %w[2.2 3.0 3.1 3.2].each do |rack|
    define_method("test_rack_#{rack.tr(".", "_")}_lint_finds_nothing") do
      app = <<~'RUBY'
        require "rack/lint"
        inner = proc { |env|
          env["rack.input"].read
          env["rack.errors"].puts("x")
          case env["PATH_INFO"]
          when "/each" then [200, {"content-type" => "text/plain"}, Class.new { def each = yield("part") }.new]
          when "/none" then [204, {}, []]
          else [200, {"content-type" => "text/plain"}, [Rack.release]]
          end
        }
        run Rack::Lint.new(inner)
      RUBY
      run = serve(app, "GET /", "HEAD /", "GET /each", "HEAD /each", "GET /none", "OPTIONS /",
                  "POST /\ncontent-type: text/plain\ncontent-length: 2\n@body ab", "POST /\n@file 100000", rack: rack)
      assert_equal [200, 200, 200, 200, 204, 200, 200, 200], run.answers.map(&:status), run.log
      assert run.answers.first.body.start_with?(rack)
      refute_includes run.log, "Lint"
    end
  end
end
