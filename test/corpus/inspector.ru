# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# The witness of the raw HTTP cases: every request that reaches it is written down, one JSON line, in a
# file of its client's address; /__seen gives that file, /__reset empties it. The echo answer carries the
# same facts; other paths answer with what a server must not pass on as it is.
require "digest"
require "json"

FOLDER = File.join(__dir__, "inspector-log")
Dir.mkdir(FOLDER) unless Dir.exist?(FOLDER)

module Inspector
  module_function

  # Bytes outside printable ASCII become \xNN, so that JSON stays valid.
  def safe(text) = text.to_s.b.gsub(/[^\x20-\x7e]/n) { |byte| format("\\x%02x", byte.ord) }.force_encoding("US-ASCII")

  def log(env) = File.join(FOLDER, env["REMOTE_ADDR"].tr("^0-9a-f.:", "_"))

  def body(env)
    digest, length = Digest::SHA256.new, 0
    while (part = env["rack.input"].read(65_536))
      digest << part
      length += part.bytesize
    end
    { "body_len" => length, "body_sha256" => digest.hexdigest }
  rescue StandardError => error
    { "body_len" => length, "body_error" => error.class.name }
  end

  PLAIN = { "method" => "REQUEST_METHOD", "path" => "PATH_INFO", "script_name" => "SCRIPT_NAME", "query" => "QUERY_STRING",
            "scheme" => "rack.url_scheme", "protocol" => "SERVER_PROTOCOL", "remote_addr" => "REMOTE_ADDR",
            "server_name" => "SERVER_NAME", "content_type" => "CONTENT_TYPE", "content_length" => "CONTENT_LENGTH" }.freeze

  def facts(env)
    plain = PLAIN.transform_values { |key| env[key] && safe(env[key]) }
    fields = env.filter_map { |key, value| [key[5..].downcase.tr("_", "-"), safe(value)] if key.start_with?("HTTP_") }
    plain.merge("headers" => fields.to_h).merge(env["PATH_INFO"].start_with?("/app/noread") ? { "body_len" => 0 } : body(env))
  end

  def note(env, facts) = File.open(log(env), "a") { |file| file.syswrite("#{JSON.generate(facts)}\n") }
end

class RaisingBody
  def each
    yield "12345"
    raise "inspector: raised in the body"
  end
end

class StreamBody
  def initialize(length) = @length = length

  def each
    left = @length
    while left.positive?
      part = [left, 1000].min
      yield "s" * part
      left -= part
    end
  end
end

TEXT = { "content-type" => "text/plain" }.freeze

# Path below /app/ => the answer; a lambda is called.
ANSWERS = {
  "noread" => [200, TEXT, ["not read\n"]],
  "status/204" => [204, {}, []],
  "status/304" => [304, { "etag" => '"x"' }, []],
  "status/404" => [404, TEXT.merge("content-length" => "5"), ["nope\n"]],
  "bad/204-body" => [204, { "content-length" => "5" }, ["hello"]],
  "bad/304-body" => [304, { "content-length" => "5" }, ["hello"]],
  "bad/crlf-value" => [200, TEXT.merge("x-evil" => "a\r\nx-injected: 1"), ["ok\n"]],
  "bad/lf-value" => [200, TEXT.merge("x-evil" => "a\nx-injected: 1"), ["ok\n"]],
  "bad/cr-value" => [200, TEXT.merge("x-evil" => "a\rx-injected: 1"), ["ok\n"]],
  "bad/split" => [200, TEXT.merge("x-evil" => "a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nSPLIT"), ["ok\n"]],
  "bad/crlf-name" => [200, TEXT.merge("x-evil\r\nx-injected" => "1"), ["ok\n"]],
  "bad/nul-value" => [200, TEXT.merge("x-evil" => "a\0b"), ["ok\n"]],
  "bad/space-name" => [200, TEXT.merge("x evil" => "1"), ["ok\n"]],
  "bad/location" => [302, { "location" => "/next\r\nset-cookie: evil=1" }, []],
  "bad/two-cl" => [200, TEXT.merge("content-length" => %w[5 6]), ["hello!"]],
  "bad/cl-text" => [200, TEXT.merge("content-length" => "five"), ["hello"]],
  "bad/short-body" => [200, TEXT.merge("content-length" => "10"), ["hello"]],
  "bad/long-body" => [200, TEXT.merge("content-length" => "5"), ["helloHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]],
  "bad/raise" => -> { raise "inspector: raised in call" },
  "bad/raise-body" => [200, TEXT, RaisingBody.new],
  "bad/raise-body-cl" => [200, TEXT.merge("content-length" => "100"), RaisingBody.new],
  "bad/status-0" => [0, TEXT, ["zero\n"]],
  "bad/nil" => -> {},
  "bad/each-int" => [200, TEXT, [1, 2, 3]],
  "cookies" => [200, TEXT.merge("set-cookie" => %w[a=1 b=2]), ["ok\n"]]
}.transform_keys { |path| "/app/#{path}" }.freeze

# Targets that are for the application; any other is a file that is not there.
OURS = %r{\A(?:/app|\*\z|/?\z|//app|http)}

def echo(facts)
  json = JSON.generate(facts)
  [200, { "content-type" => "application/json", "content-length" => json.bytesize.to_s, "x-inspector" => "echo" }, [json]]
end

def answer(path, facts)
  return [404, TEXT.merge("x-inspector" => "fallback"), ["no such page\n"]] unless path.match?(OURS)

  case path
  when %r{\A/app/stream/(\d+)\z} then [200, TEXT.dup, StreamBody.new($1.to_i)]
  when %r{\A/app/big/(\d+)\z} then [200, TEXT.merge("content-length" => $1), StreamBody.new($1.to_i)]
  else
    made = ANSWERS.fetch(path) { return echo(facts) }
    made.respond_to?(:call) ? made.call : made
  end
end

run(lambda do |env|
  log = Inspector.log(env)
  case env["PATH_INFO"]
  when "/__seen" then [200, TEXT.dup, [File.exist?(log) ? File.read(log) : ""]]
  when "/__reset" then File.write(log, "") && [200, TEXT.dup, ["reset\n"]]
  else
    facts = Inspector.facts(env)
    Inspector.note(env, facts)
    answer(env["PATH_INFO"], facts)
  end
end)
