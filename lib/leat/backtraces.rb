# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # What this worker's threads do, in words, for master when it asks: over `timeout`, and for
  # `leat backtrace`. The main thread answers, which has nothing else to do while others serve; so no
  # signal is needed that an application might want for itself, and nothing is interrupted. An answer is
  # bounded, and so is the time that is spent on giving it.
  class Backtraces
    THREADS = 64
    FRAMES = 100
    TEXT_BYTES = 200_000
    PART_BYTES = 9_000
    GIVE_UP_SECONDS = 1

    # identity: the values that say who answers.
    def initialize(board, report, identity)
      @board = board
      @report = report
      @socket = Native.identity(report)
      @identity = identity
      @answered = board.question
      @seats = {}.compare_by_identity
    end

    # The seat that the current thread serves at.
    def enter(seat)
      @seats[Thread.current] = seat
    end

    def leave
      @seats.delete(Thread.current)
    end

    # Answers what was asked since the last answer. A failure is no matter: master does not wait for long.
    def answer
      number = @board.question
      return if number == @answered

      @answered = number
      send_parts(number, slice(describe))
    rescue StandardError
      nil
    end

    private

    def describe
      threads = Thread.list - [Thread.current]
      text = threads.first(THREADS).map { |thread| paragraph(thread) }.join
      text << "... and #{threads.size - THREADS} threads more\n" if threads.size > THREADS
      text = text.scrub("?")
      text.bytesize > TEXT_BYTES ? "#{text.byteslice(0, TEXT_BYTES).scrub("")}...\n" : text
    end

    # A line about the thread, and its frames, indented.
    def paragraph(thread)
      work = @seats[thread]&.work
      idle = @seats.key?(thread) && work.nil?
      frames = idle ? [] : frames(thread)
      [heading(thread, work, idle), *frames.map { |frame| "    #{line(frame)}" }].join("\n") << "\n"
    end

    def heading(thread, work, idle)
      "thread #{line(name(thread)).inspect} (#{thread.status || "dead"})#{doing(work)}#{": waits for a request" if idle}"
    end

    def doing(work)
      return unless work

      id, seconds, held = work
      format(": request id=%s %s %.1f s", id, held ? "for" : "answered, taken before", seconds)
    end

    def name(thread)
      thread.name || thread.inspect[/\A#<\S+ (.+) \w+>\z/, 1] || "unnamed"
    end

    # Without those at the bottom, which are the server's own.
    def frames(thread)
      frames = thread.backtrace(0, FRAMES + 1) || []
      frames[FRAMES] = "..." if frames.size > FRAMES
      own = frames.reverse.take_while { |frame| frame.start_with?("#{__dir__}/") }.size
      own < frames.size ? frames.first(frames.size - own) : frames
    end

    def line(text)
      text.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[[:cntrl:]]/, "?")
    end

    def slice(text)
      parts = []
      until text.empty?
        parts << text.byteslice(0, PART_BYTES).scrub("")
        text = text.byteslice(parts.last.bytesize..)
      end
      parts.empty? ? [""] : parts
    end

    def send_parts(number, parts)
      limit = now + GIVE_UP_SECONDS
      parts.each_with_index do |part, index|
        last = index == parts.size - 1 ? 1 : 0
        message = Control.format("backtrace", { **@identity, "number" => number, "last" => last, "text" => part })
        until offer(message)
          return if now > limit

          sleep 0.005
        end
      end
    end

    # Not into what an application has put in the place of our socket.
    def offer(message)
      raise IOError, "the report socket is gone" unless Native.identity(@report) == @socket

      Native.offer(@report, message)
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
