# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # A worker: serves requests from the board until it is told to retire. It is forked by a mold with the
  # application loaded, or loads it itself.
  class Worker
    WAIT_SECONDS = 30
    LEFT_ALONE = 70 # exit status when master is gone

    # hello: the values of the message; fds: its descriptors, by name.
    def initialize(hello, fds, index, loader)
      @hello = hello
      @fds = fds
      @index = index
      @loader = loader
      @status = 0
    end

    # Serves until retirement. The caller then leaves by exit, so that at_exit handlers run.
    def run
      Log.name("worker", @hello["pool"])
      Boot.title("worker", @hello, "starting")
      Worker.wait_until { Process.ppid == @hello["master"].to_i }
      Worker.bind_to_master(@hello, @fds)
      open_board
      set_traps
      srand
      @board.report(@fds[:report], last_request)
      @loader.hooks.run(:after_fork, @index)
      serve_until_retired
      run_last_hooks
      @status
    end

    # Waits for something that master does soon; without master there is nothing to wait for.
    def self.wait_until
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + WAIT_SECONDS
      until yield
        exit!(LEFT_ALONE) if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        sleep 0.001
      end
    end

    # This process ends with master: by the kernel's signal, and by the pipe whose other end only master
    # has. The second look at the parent closes the gap before the signal was set.
    def self.bind_to_master(hello, fds)
      Native.die_with_parent
      exit!(LEFT_ALONE) unless Process.ppid == hello["master"].to_i
      Native.watch(fds[:death])
    end

    private

    def run_last_hooks
      @loader.hooks.run(:before_exit)
    rescue StandardError => error
      Log.exception(error, in: "before_exit")
    end

    def open_board
      @board = Board.new(@fds[:board], @index, @fds[:bells])
      Native.close(@fds[:board])
      Worker.wait_until { @board.pid == Process.pid }
      Streams.watch(@board, @hello["stream_drain_ms"].to_i / 1000.0)
    end

    # Workers that began together do not end together.
    def last_request
      limit = @hello["max_requests"].to_i
      limit - rand(limit / 8 + 1)
    end

    def set_traps
      trap("TERM") { @board.retire }
      trap("QUIT") { exit!(0) }
      # A block, not "IGNORE": what the application starts by exec shall not inherit it.
      trap("INT") {}
      %w[HUP USR1 USR2].each do |signal|
        former = trap(signal) { Log.reopen_soon(@hello["log"]) if signal == "HUP" }
        trap(signal, former) unless former == "DEFAULT"
      end
    end

    def serve_until_retired
      @ended = []
      @backtraces = Backtraces.new(@board, @fds[:report], "index" => @index, "pid" => Process.pid)
      count = threads
      count.times { |index| start_thread(index) }
      @board.measure
      @board.ready
      Boot.title("worker", @hello, "serving")
      Control.send(@fds[:report], "ready", "index" => @index, "pid" => Process.pid)
      attend while (count -= replace_ended).positive?
      Streams.finish
    end

    # Sleeps until a thread has ended or master asks something, and answers that.
    def attend
      bell = @board.bell
      @backtraces.answer
      @board.attend(bell) if @ended.empty?
    end

    # A thread that the application killed is replaced; the others end when the worker retires. Returns how
    # many were not.
    def replace_ended
      gone = 0
      while (index = @ended.shift)
        next start_thread(index) unless @board.retiring?

        gone += 1
        Boot.title("worker", @hello, "retiring")
      end
      gone
    end

    def threads
      @board.threads
    end

    def start_thread(index)
      Thread.new do
        Thread.current.name = "leat #{index}"
        Thread.current.report_on_exception = false
        begin
          serve(index)
        rescue Exception => error # rubocop:disable Lint/RescueException
          broken(error)
        ensure
          @ended << index
          @board.ring
        end
      end
    end

    # An exception of our own, or a forked child that leaves: no thread can go on after the first.
    def broken(error)
      raise error if error.is_a?(SystemExit)

      Log.exception(error)
      @status = 1
      @board.retire
    end

    def serve(index)
      errors = Errors.new
      seat = errors.seat = Seat.new(@board, index, fixed_env(errors), Reporter, @loader.old_rack?)
      @backtraces.enter(seat)
      app = @loader.app
      loop do
        env = next_env(seat)
        break unless env

        offer_hijack(seat, env)

        answer(seat, app, env)
      end
    ensure
      @backtraces.leave
      seat&.done
    end

    # To Rack 2 the two keys are one offer.
    def offer_hijack(seat, env)
      if seat.tunnel?
        env["rack.hijack"] = Hijack.new(seat, env)
      else
        env["rack.hijack?"] = false
      end
    end

    # An interrupt may come while the thread waits, or between taking and calling.
    def next_env(seat)
      seat.take
    rescue Exception => error # rubocop:disable Lint/RescueException
      raise unless seat.mine?

      Log.exception(error)
      fail_request(seat, error) if seat.held?
      retry
    end

    def answer(seat, app, env)
      error = nil
      begin
        response = app.call(env)
        status, headers, body = seat.hijacked? ? ignored(response) : triple(response)
        unless seat.answer(status, headers, body)
          Response.new(seat, env, status, headers, body, rack2: @loader.rack2?).deliver
        end
      rescue Exception => error # rubocop:disable Lint/RescueException
        raise unless seat.mine?

        failed(seat, env, error)
      ensure
        # The thread was killed: nothing is rescued, but the client gets its answer.
        fail_request(seat, error) if seat.mine? && seat.held?
      end
      after(env, status, headers, error)
    end

    # What an application returns after it took the connection is not sent, but its body is closed.
    def ignored(response)
      response.respond_to?(:to_ary) ? response.to_ary : []
    end

    def triple(response)
      return response if response.instance_of?(Array) && response.size == 3

      list = response.respond_to?(:to_ary) ? response.to_ary : nil
      return list if list.is_a?(Array) && list.size == 3

      raise TypeError, "the application returned #{response.class} instead of status, headers and body"
    end

    def failed(seat, env, error)
      unless error.is_a?(ClientGone)
        Log.exception(error, id: seat.id, request: "#{env["REQUEST_METHOD"]} #{env["REQUEST_PATH"]}")
      end
      # Nobody else may know of the connection.
      Streams.close(env["rack.hijack_io"]) if seat.held? && seat.hijacked?
      fail_request(seat, error) if seat.held?
      leave(error) if error.is_a?(SystemExit)
    end

    # `exit` in a request ends this worker in order: the client was answered, the others finish.
    def leave(error)
      @status = error.status
      @board.retire
    end

    # Before a byte was sent: 500. After it: an end that is visibly none.
    def fail_request(seat, error)
      Thread.handle_interrupt(Object => :never) do
        if seat.take_back
          headers, body = development? && error ? exception_page(error) : [{}, nil]
          seat.stage(500, headers)
          seat.head(nil, false)
          seat.write(body) if body
          seat.finish(false)
        else
          seat.finish(true)
        end
      end
    rescue ClientGone
      seat.finish(true) if seat.held?
    end

    def development?
      @hello["environment"] == "development"
    end

    def exception_page(error)
      text = "#{error.class}: #{error.message}\n\n#{Array(error.backtrace).first(60).join("\n")}\n"
      text = text.dup.force_encoding(Encoding::UTF_8).scrub("?")
      [{ "content-type" => "text/plain; charset=utf-8", "content-length" => text.bytesize.to_s }, text]
    end

    # What the application wants done when the answer is out. A failure stops nothing.
    def after(env, status, headers, error)
      finished = env["rack.response_finished"]
      if finished.respond_to?(:reverse_each)
        finished.reverse_each { |callable| guarded { callable.call(env, status, headers, error) } }
      end
      replied = env["rack.after_reply"]
      replied.each { |callable| guarded { callable.call } } if replied.respond_to?(:each)
    end

    def guarded
      yield
    rescue StandardError, ScriptError => error
      Log.exception(error, in: "response_finished")
    end

    # The part of env that never changes.
    def fixed_env(errors)
      {
        "rack.version" => rack_version, "rack.errors" => errors, "rack.multithread" => @board.threads > 1,
        "rack.multiprocess" => true, "rack.run_once" => false, "rack.hijack?" => true,
        "rack.early_hints" => EarlyHints.new(errors), "sendfile.type" => "X-Sendfile",
        "SERVER_SOFTWARE" => "leat/#{VERSION}", "GATEWAY_INTERFACE" => "CGI/1.2"
      }
    end

    def rack_version
      defined?(::Rack::VERSION) && ::Rack::VERSION.is_a?(Array) ? ::Rack::VERSION : [1, 3]
    end
  end

  # rack.early_hints of one worker thread.
  class EarlyHints
    def initialize(errors)
      @errors = errors
    end

    def call(headers)
      @errors.seat.hints(headers)
    end
  end

  # Is told what was left out of an answer's head; says each name once.
  module Reporter
    @seen = {}

    class << self
      def illegal_field(name)
        once("left a field out of an answer: #{name.inspect} or its value is illegal", name)
      end

      def odd_value(name)
        once("a field of an answer has a value that is no String: #{name.inspect}", [name])
      end

      private

      def once(text, key)
        return if @seen.key?(key) || @seen.size > 1000

        @seen[key] = true
        Log.warn(text)
      end
    end
  end
end
