# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Every form of request and answer under Rack::Lint of every Rack, and what is called after an answer.
class RackTest < ServerCase
  FORMS = <<~'RUBY'
    require "rack"
    require "rack/lint"

    class Parts
      def initialize(list) = @list = list
      def each(&block) = @list.each(&block)
      def close = File.write("closed", "c", mode: "a")
    end

    class Path < Parts
      def to_path = File.expand_path("big.txt")
    end

    CALL = proc { |stream| stream.write("by"); stream << " call"; stream.close }
    TEXT = {"content-type" => "text/plain"}

    use Rack::Lint
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/array" then [200, TEXT.merge("content-length" => "3"), ["one"]]
      when "/arrays" then [200, TEXT.merge("x-request-length" => env["rack.input"].read.bytesize.to_s), %w[o n e]]
      when "/each" then [200, TEXT.dup, Parts.new(%w[by\ each])]
      when "/path" then [200, TEXT.dup, Path.new(["by ", "path"])]
      when "/call" then [200, TEXT.dup, CALL]
      when "/204" then [204, {}, []]
      when "/304" then [304, {}, Parts.new([])]
      else [404, TEXT.dup, ["none"]]
      end
    end)
  RUBY

  { "2.2" => "~> 2.2.0", "3.0" => "~> 3.0.0", "3.1" => "~> 3.1.0", "3.2" => "~> 3.2.0" }.each do |name, requirement|
    define_method("test_rack_#{name.tr('.', '_')}_finds_nothing_wrong") { lint(name, requirement) }
  end

  def lint(name, requirement)
    app FORMS
    write "Gemfile", %(gem "rack", "#{requirement}"\n)
    write "big.txt", "by path"
    server = start("-e", "production", "-w", "1")
    bodies = { "/array" => "one", "/arrays" => "one", "/each" => "by each", "/path" => "by path", "/other" => "none" }
    bodies["/call"] = "by call" if name.start_with?("3") # callable bodies came with Rack 3
    bodies.each { |path, body| assert_forms(server, path, body) }
    %w[/204 /304].each { |path| assert_equal path.delete("/"), get(server, path).code, server.output }
    assert_equal "40000", http(server, "/arrays", method: "POST", body: "x" * 40_000)["x-request-length"], server.output
    assert_equal 200, raw(server, "GET /array HTTP/1.0\r\n\r\n").first.status, server.output
    refute_match(/LintError/, server.output)
  end

  def assert_forms(server, path, body)
    [["GET", nil], ["POST", "form=1"], ["POST", "b" * 100_000], ["PUT", ""], ["HEAD", nil], ["DELETE", nil], ["OPTIONS", nil]].each do |method, sent|
      reply = http(server, path, method: method, body: sent)
      assert_equal path == "/other" ? "404" : "200", reply.code, "#{method} #{path}\n#{server.output[-3000..]}"
      assert_equal body, reply.body, "#{method} #{path}" unless method == "HEAD"
    end
  end

  def notes(name) = File.exist?(File.join(@dir, name)) ? File.read(File.join(@dir, name)) : ""

  CLOSING = <<~'RUBY'
    Body = Struct.new(:name, :list, :error) do
      def each
        list.each { |part| yield part }
        raise error if error
      end

      def close = File.write("closed", "#{name}\n", mode: "a")
    end

    class Called < Body
      undef_method :each
      def call(stream) = list.each { |part| stream.write(part) }
    end

    class FileBody < Body
      def to_path = File.expand_path("config.ru")
    end

    class Listed < Body
      def to_ary = list.tap { close }
    end

    run(lambda do |env|
      name = env["PATH_INFO"].delete_prefix("/")
      text = {"content-type" => "text/plain"}
      case name
      when "each", "head" then [200, text, Body.new(name, %w[a b])]
      when "length" then [200, text.merge("content-length" => "2"), Body.new(name, %w[a b])]
      when "short" then [200, text.merge("content-length" => "9"), Body.new(name, %w[a b])]
      when "long" then [200, text.merge("content-length" => "1"), Body.new(name, %w[a b])]
      when "204" then [204, {}, Body.new(name, [])]
      when "304" then [304, {}, Body.new(name, ["x"])]
      when "early" then [200, text, Body.new(name, [], RuntimeError.new("early"))]
      when "late" then [200, text, Body.new(name, %w[a], RuntimeError.new("late"))]
      when "wrong" then [200, text, Body.new(name, [1])]
      when "status" then [9000, text, Body.new(name, %w[a])]
      when "headers" then [200, nil, Body.new(name, %w[a])]
      when "call" then [200, text, Called.new(name, %w[a b])]
      when "path" then [200, text, FileBody.new(name, %w[a b])]
      when "listed" then [200, text, Listed.new(name, %w[a b])]
      when "gone" then [200, text, Body.new(name, Enumerator.new { |list| loop { list << "x" * 50_000 } })]
      else [200, text, ["other"]]
      end
    end)
  RUBY

  def test_the_body_is_closed_exactly_once_on_every_path
    app CLOSING
    server = start("-e", "production", "-w", "1", "-t", "1")
    names = %w[each length short long 204 304 early late wrong status headers call path listed]
    names.each do |name|
      connect(server) do |socket|
        socket.write("GET /#{name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        socket.read
      end
    end
    http(server, "/head", method: "HEAD")
    connect(server) do |socket|
      socket.write("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n")
      socket.readpartial(1000)
      reset(socket)
    end
    assert_equal "other", get(server, "/other").body, "the only thread is free again"
    eventually(5, "all are closed") { notes("closed").lines.size >= names.size + 2 }
    assert_equal [*names, "head", "gone"].sort, notes("closed").split.sort
  end

  def test_what_waits_for_the_end_of_an_answer_is_called_in_reverse_and_never_stopped
    app <<~'RUBY'
      def note(*parts) = File.write("notes", parts.inspect + "\n", mode: "a")

      run(lambda do |env|
        env["rack.response_finished"] << proc { |e, status, headers, error| note(:first, e["PATH_INFO"], status, headers && headers["x-a"], error.class) }
        env["rack.response_finished"] << proc { raise "in finished" }
        env["rack.response_finished"] << proc { |*arguments| note(:last, arguments.size) }
        env["rack.after_reply"] << proc { raise "in after_reply" }
        env["rack.after_reply"] << proc { |*arguments| note(:replied, arguments.size) }
        raise ArgumentError, "in call" if env["PATH_INFO"] == "/raise"

        [200, {"x-a" => "1"}, ["ok"]]
      end)
    RUBY
    server = start("-e", "production", "-w", "1", "-t", "1")
    assert_equal "ok", get(server, "/fine").body
    assert_equal "500", get(server, "/raise").code
    eventually(5) { notes("notes").lines.size == 6 }
    assert_equal ["[:last, 4]", '[:first, "/fine", 200, "1", NilClass]', "[:replied, 0]",
                  "[:last, 4]", '[:first, "/raise", nil, nil, ArgumentError]', "[:replied, 0]"], notes("notes").lines(chomp: true)
    assert_match(/in finished/, server.output)
    assert_match(/in after_reply/, server.output)
  end

  def test_the_answer_is_out_before_what_comes_after_it
    app <<~'RUBY'
      run(lambda do |env|
        env["rack.after_reply"] << proc { File.open("gate", "r").close }
        [200, {"content-type" => "text/plain"}, ["out"]]
      end)
    RUBY
    File.mkfifo(gate = File.join(@dir, "gate"))
    server = start("-e", "production", "-w", "1", "-t", "2")
    assert_equal "out", get(server, "/").body
    File.open(gate, "w", &:close)
  end
end
