# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # env["rack.hijack"] of one request: gives the application its connection.
  class Hijack
    def initialize(seat, env)
      @seat = seat
      @env = env
      @id = seat.id
    end

    # The connection as an IO; the same one when it is asked for again.
    def call
      @env["rack.hijack_io"] ||= begin
        # The thread's seat may hold another request by now.
        raise IOError, "the request was answered" unless @seat.held? && @seat.id.equal?(@id)

        Streams.open(@seat.hijack)
      end
    end

    # Not with the env that holds it.
    def inspect
      "#<#{self.class}>"
    end
  end

  # The connections of this worker that its application has taken over. A worker that retires stays until
  # they have ended, or their time is over: then they are closed.
  module Streams
    LOOK_SECONDS = 1     # how often a worker with open streams looks whether it retires
    RETIRE_SECONDS = 0.02 # and, when it does, whether they have ended
    PATIENCE_SECONDS = 0.5 # for the application to notice that a client has left

    @open = ObjectSpace::WeakMap.new
    @lock = Mutex.new
    @ending = Mutex.new

    class << self
      # Before the first stream. seconds: how long a retiring worker waits for them.
      def watch(board, seconds)
        @board = board
        @seconds = seconds
      end

      # A descriptor as the IO that applications expect of a connection. The application's own `socket`
      # decides whether it is a BasicSocket: none is loaded here.
      def open(descriptor)
        io = defined?(::UNIXSocket) ? ::UNIXSocket.for_fd(descriptor) : ::IO.for_fd(descriptor, "r+b")
        io.sync = true
        @lock.synchronize do
          @open[io] = true
          @board.streams = @open.size # some may be closed; the watcher counts anew
          @watcher = Thread.new { look } unless @watcher&.alive?
        end
        io
      end

      # Runs the callable with the connection, apart from the worker's threads.
      def serve(io, callable, id)
        Thread.new do
          Thread.current.name = "leat stream"
          Thread.current.report_on_exception = false
          call(io, callable, id)
        end
      end

      # What a callable raises ends its stream; that the client has left is no news.
      def call(io, callable, id)
        callable.call(io)
      rescue Exception => error # rubocop:disable Lint/RescueException
        Log.exception(error, id: id, in: "a stream") unless left?(io, error)
        close(io)
        raise unless error.is_a?(StandardError) || error.is_a?(ScriptError)
      end

      # Waits for the streams of a worker that retires, then closes what is left.
      def finish
        @ending.synchronize do
          wait_for_ends(now + @seconds)
          list.each { |io| close(io) }
          count
        end
      end

      def close(io)
        io&.close
      rescue SystemCallError, IOError
        nil
      end

      private

      # A thread that exists only while streams are open: every thread that serves may be inside one.
      def look
        loop do
          sleep LOOK_SECONDS
          break finish if @board.retiring?

          @lock.synchronize { return @watcher = nil if count.zero? }
        end
      end

      # A worker whose streams still have somebody at the other end is not idle, and is not killed because
      # another request of it hangs. Returns how many are open.
      def count
        open = list
        @board.streams = open.count { |io| !gone?(io) }
        open.size
      end

      def list
        @open.keys.reject(&:closed?)
      end

      def wait_for_ends(limit)
        until (open = list).empty? || now > limit
          limit = [limit, now + PATIENCE_SECONDS].min if open.all? { |io| gone?(io) }
          sleep RETIRE_SECONDS
        end
      end

      def gone?(io)
        Native.gone?(io.fileno)
      rescue IOError
        true
      end

      def left?(io, error)
        error.is_a?(Errno::EPIPE) || error.is_a?(Errno::ECONNRESET) || (error.is_a?(IOError) && io.closed?)
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
