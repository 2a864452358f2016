# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "worker_case"

# What Rack allows an application to return, and what of it reaches the front.
class RackFormsTest < WorkerCase
  # A body that says on standard error when it is closed.
  BODY = <<~'RUBY'
    class Body
      def initialize(*parts, &block) = (@parts, @block = parts, block)
      def each = (@parts.each { |part| yield part }; @block&.call)
      def close = $stderr.puts("CLOSED")
    end
  RUBY

  def test_an_array_goes_out_with_its_length_in_one_piece
    answer = ask(%(run(proc { [200, {"content-type" => "text/plain"}, ["o", "k\xC3\xA9"]] })))
    assert_equal [["content-type", "text/plain"], ["content-length", "4"]], answer.fields
    assert_equal ["ok\\xc3\\xa9"], answer.parts
    assert answer.whole?
  end

  def test_lists_lines_nil_and_integers_are_values
    headers = %({"set-cookie" => ["a=1", "b=2"], "x-old" => "c\\nd", "x-nil" => nil, "x-int" => 7, "x-none" => []})
    run = serve("run(proc { ['200', #{headers}, ['ok']] })", "GET /", "GET /")
    answer = run.answers.first
    assert_equal %w[a=1 b=2], answer.field("set-cookie")
    assert_equal %w[c d], answer.field("x-old")
    assert_equal %w[7], answer.field("x-int")
    assert_empty answer.field("x-nil") + answer.field("x-none")
    assert_equal 1, run.log.scan("x-int").size
  end

  def test_what_may_not_go_out_is_left_out_and_named_once
    headers = %({"bad name" => "1", "rack.x" => "1", "status" => "200", "x-inj" => "a\\r\\nset-cookie: evil=1",
                 "x-nul" => "a\\0b", "transfer-encoding" => "chunked", "connection" => "close", "X-Case" => "1"})
    run = serve("run(proc { [200, #{headers}, ['ok']] })", "GET /", "GET /")
    answer = run.answers.first
    assert_equal [%w[x-case 1]], answer.fields
    assert_includes answer.flags, "close"
    assert_equal "ok", answer.body
    %w[x-inj x-nul rack.x].each { |name| assert_equal 1, run.log.scan(name).size, name }
    refute_includes run.log, "evil"
  end

  def test_each_is_streamed_part_by_part_and_closed_once
    run = serve("#{BODY} run(proc { [200, {}, Body.new('a', '', 'b' * 70_000, '')] })", "GET /")
    answer = run.answers.first
    assert answer.stream? && answer.whole?
    assert_equal "a", answer.parts.first
    assert_equal 1, run.log.scan("CLOSED").size
  end

  def test_a_body_with_its_own_chunks_is_framed_once
    answer = ask(%(run(proc { [200, {"transfer-encoding" => "chunked"}, ["2\\r\\nok\\r\\n", "3\\r\\nab", "c\\r\\n0\\r\\n\\r\\n"]] })))
    assert_equal "okabc", answer.body
    assert_empty answer.field("transfer-encoding")
  end

  def test_a_file_is_passed_with_its_true_length
    File.binwrite(File.join(@dir, "big"), "x" * 100_000)
    app = "#{BODY} run(proc { b = Body.new('no'); def b.to_path = 'big'; [200, {'content-length' => '5'}, b] })"
    run = serve(app, "GET /", "HEAD /")
    run.answers.each do |answer|
      assert_equal "0 100000 of 100000", answer.file
      assert_equal %w[100000], answer.field("content-length")
    end
    assert_equal 2, run.log.scan("CLOSED").size
  end

  def test_a_path_that_is_nil_or_no_file_falls_back_to_each
    ["nil", "'/nonexistent'", "'/tmp'"].each do |path|
      answer = ask("#{BODY} run(proc { b = Body.new('each'); b.define_singleton_method(:to_path) { #{path} }; [200, {}, b] })")
      assert_equal "each", answer.body, path
    end
  end

  def test_a_callable_writes_to_a_stream_and_each_wins_over_call
    call = "c = Object.new; def c.call(s) = (s.write('1', '2'); s << '3'; s.flush; s.close)"
    assert_equal "123", ask("#{call}; run(proc { [200, {}, c] })").body
    assert_equal "each", ask("#{call}; def c.each = yield('each'); run(proc { [200, {}, c] })").body
  end

  def test_to_ary_closes_the_body_itself
    app = "#{BODY} class Body; def to_ary = (close; @parts); end; run(proc { [200, {}, Body.new('a', 'b')] })"
    run = serve(app, "GET /", rack: "3.1")
    assert_equal %w[2], run.answers.first.field("content-length")
    assert_equal 1, run.log.scan("CLOSED").size
    run = serve(app, "GET /", rack: "2.2")
    assert_equal 1, run.log.scan("CLOSED").size, "Rack 2 promises nothing about to_ary"
  end

  def test_head_204_and_304_have_no_body_but_close_it
    app = "#{BODY} run(proc { |e| [e['PATH_INFO'][1..].to_i, {'content-type' => 'x', 'content-length' => '1'}, Body.new('x')] })"
    run = serve(app, "HEAD /200", "GET /204", "GET /304")
    assert_equal ["", "", ""], run.answers.map(&:body)
    assert_equal [%w[1], [], []], run.answers.map { |answer| answer.field("content-length") }
    assert_equal 3, run.log.scan("CLOSED").size
  end

  def test_callbacks_run_in_reverse_order_and_a_failing_one_stops_nobody
    app = <<~'RUBY'
      run(proc { |env|
        env["rack.response_finished"] << proc { |_, status, _, error| $stderr.puts "first #{status.inspect} #{error.inspect}" }
        env["rack.response_finished"] << proc { raise "no" } << proc { $stderr.puts "last" }
        env["rack.after_reply"] << proc { $stderr.puts "replied" }
        raise "bad" if env["PATH_INFO"] == "/bad"
        [200, {}, ["x"]]
      })
    RUBY
    run = serve(app, "GET /", "GET /bad")
    assert_equal ["last", "first 200 nil", "replied", "last", "first nil #<RuntimeError: bad>", "replied"],
                 run.log.lines(chomp: true).grep(/\A(last|first|replied)/)
    assert_equal [200, 500], run.answers.map(&:status)
  end

  def test_early_hints_go_before_the_head_and_never_after_it
    app = <<~'RUBY'
      run(proc { |env|
        hints = env["rack.early_hints"]
        hints.call("link" => "</a.css>; rel=preload")
        hints.call({})
        [200, {}, Enumerator.new { |y| y << "a"; hints.call("link" => "late") }]
      })
    RUBY
    answer = ask(app)
    assert_equal [103], answer.interim
    assert_equal "a", answer.body
  end

  def test_a_large_head_and_a_large_body_take_as_many_pages_as_they_need
    answer = ask("run(proc { [200, {'x-big' => 'v' * 40_000}, ['y' * 300_000]] })")
    assert_equal 40_000, answer.field("x-big").first.size
    assert_equal %w[300000], answer.field("content-length")
    assert answer.whole?
  end
end
