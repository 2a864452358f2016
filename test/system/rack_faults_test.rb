# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "worker_case"

# What applications do that they should not: the client sees an error at once, the body is closed once,
# one line says why, and the worker goes on.
class RackFaultsTest < WorkerCase

  def app(text)
    <<~RUBY
      class Body
        def initialize(*parts, &block) = (@parts, @block = parts, block)
        def each = (@parts.each { |part| yield part }; @block&.call)
        def close = $stderr.puts("CLOSED")
      end
      H = {"content-type" => "text/plain"}
      def deep(n) = deep(n + 1) + 1
      run(proc { |env| next [200, {}, ["fine"]] if env["PATH_INFO"] == "/"; #{text} })
    RUBY
  end

  # Serves the fault and then an ordinary request.
  def fault(text, **options)
    run = serve(app(text), "GET /fault", "GET /", **options)
    assert_equal "fine", run.answers[1]&.body, "the next request: #{run.log}"
    assert_match(/worker exit 0 requests 2 busy 0\n.*mold exit 0\naudit: sound/m, run.rest)
    run
  end

  {
    "raise" => "raise 'boom'", "exception" => "raise Exception, 'boom'", "throw" => "throw :halt", "deep" => "deep(0)",
    "no memory" => "raise NoMemoryError, 'boom'", "killed thread" => "Thread.current.kill",
    "timeout" => "require 'timeout'; Timeout.timeout(0.01) { sleep }"
  }.each do |name, text|
    define_method("test_#{name.tr(" ", "_")}_gives_a_clean_500") do
      run = fault(text)
      assert_equal 500, run.answers[0].status
      assert run.answers[0].whole?
      assert_operator run.log.scan(" error ").size, :<=, 1, run.log
    end
  end

  ["0", "nil", "99", "1000", "'x'", "101"].each do |status|
    define_method("test_the_status_#{status.tr("'", "")}_is_none") do
      run = fault("[#{status}, H, Body.new('x')]")
      assert_equal 500, run.answers[0].status
      assert_equal 1, run.log.scan("CLOSED").size
    end
  end

  ["nil", "[200, {}]", "'string'", "[200, nil, ['x']]", "[200, {}, nil]", "[200, {}, [1]]", "[200, {}, 'x']"].each do |triple|
    define_method("test_no_answer_is_#{triple}") do
      assert_equal 500, fault(triple).answers[0].status
    end
  end

  def test_the_log_line_names_class_message_place_and_request
    log = fault("raise ArgumentError, 'no such thing'").log
    assert_match(%r{error pool=test id=req-1 request=GET /fault ArgumentError: no such thing at .*config\.ru:8$}, log)
  end

  def test_an_error_before_the_first_part_is_a_clean_500
    run = fault("[200, H, Body.new { raise 'early' }]")
    assert_equal 500, run.answers[0].status
    assert_equal 1, run.log.scan("CLOSED").size
  end

  def test_an_error_after_the_first_part_is_a_visible_cut
    ["raise 'late'", "throw :halt", "Thread.current.kill"].each do |text|
      run = fault("[200, H, Body.new('part1') { #{text} }]")
      assert_equal [200, "part1"], [run.answers[0].status, run.answers[0].body]
      assert run.answers[0].cut?
      assert_equal 1, run.log.scan("CLOSED").size
    end
  end

  def test_an_error_in_close_leaves_the_answer_whole_and_is_logged
    run = fault("b = Body.new('x'); def b.close = raise('in close'); [200, H, b]")
    assert run.answers[0].whole?
    assert_equal 1, run.log.scan("in close").size
  end

  def test_a_client_that_left_ends_the_stream_with_epipe
    text = "[200, H, proc { |s| begin; s.write('x') while true; rescue Errno::EPIPE; $stderr.puts('EPIPE'); raise; end }]"
    run = serve(app(text), "GET /fault\n@left", "GET /")
    assert_includes run.log, "EPIPE"
    refute_includes run.log, " error "
    assert_equal "fine", run.answers[1].body
  end

  def test_exit_answers_and_ends_the_worker_in_order
    run = serve(app("exit 0"), "GET /fault")
    assert_equal 500, run.answers[0].status
    assert_match(/worker exit 0 requests 1 busy 0/, run.rest)
  end

  def test_a_forked_child_never_answers
    ["sleep 0.05; [200, H, ['child']]", "exit 7", "raise 'child'", "exec 'true'"].each do |child|
      run = fault("if (pid = fork) then Process.wait(pid); [200, H, ['parent']] else #{child} end")
      assert_equal "parent", run.answers[0].body, child
    end
  end

  def test_development_shows_the_exception
    answer = fault("raise 'seen'", environment: "development").answers[0]
    assert_equal 500, answer.status
    assert_match(/RuntimeError: seen/, answer.body)
  end

  def test_a_worker_of_its_own_and_one_without_preloading_serve_alike
    assert_equal "fine", serve(app(""), "GET /", role: "worker").answers[0].body
    run = serve(app(""), "GET /", preload: "false")
    assert_match(/preload=false/, run.reports[0])
    assert_equal "fine", run.answers[0].body
  end

  def test_a_connection_open_after_loading_is_never_shared
    text = "require 'socket'; LISTENER = TCPServer.new('127.0.0.1', 0)\nOPEN = TCPSocket.new('127.0.0.1', LISTENER.addr[1])\n"
    run = serve("#{text}run(proc { [200, {}, ['fine']] })", "GET /")
    assert_match(/preload=false .*reason=a connected socket is open after loading \(.*config\.ru:2\)/, run.reports[0])
    assert_equal "fine", run.answers[0].body
  end

  def test_an_application_that_cannot_be_loaded_says_why
    run = serve("raise 'no database'", "GET /")
    assert_match(/\A\+failed .*class=RuntimeError message=no database place=.*config\.ru:1/, run.reports[0])
    assert_match(/hint=.*Gemfile/, serve("require 'no_such_library'", "GET /").reports[0])
    assert_match(/message=the application left by exit/, serve("exit", "GET /").reports[0])
  end
end
