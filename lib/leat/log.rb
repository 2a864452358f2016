# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # One event, one line on standard error, in the form of the server's own log.
  module Log
    @role = "ruby"
    @pool = nil

    class << self
      # Who speaks: "mold" or "worker", and for which pool.
      def name(role, pool)
        @role = role
        @pool = pool
      end

      def line(level, text, **pairs)
        pairs = { pool: @pool, **pairs }.compact.map { |key, value| "#{key}=#{value}" }
        time = Time.now.utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ")
        STDERR.write("#{[time, @role, Process.pid, level, *pairs, clean(text)].join(" ")}\n")
      rescue SystemCallError, IOError
        nil # a log that cannot be written stops nobody
      end

      # The file that output goes to was rotated away: goes on in the new one. For a signal handler, where
      # no lock may be taken.
      def reopen_soon(path)
        Thread.new { reopen(path) } if path
      end

      def warn(text, **pairs)
        line("warn", text, **pairs)
      end

      def error(text, **pairs)
        line("error", text, **pairs)
      end

      # An exception: class, message, first line of the application.
      def exception(error, **pairs)
        message = error.message.to_s
        place = Fault.place(error)
        self.error("#{error.class}: #{message[0, 2000]}#{" at #{place}" if place}", **pairs)
      rescue StandardError => second
        self.error("#{error.class} whose message raised #{second.class}", **pairs)
      end

      private

      # What the application has pointed elsewhere is left alone.
      def reopen(path)
        [STDOUT, STDERR].each do |stream|
          next unless !stream.closed? && stream.stat.file?

          sync = stream.sync
          stream.reopen(path, "a")
          stream.sync = sync
        end
      rescue SystemCallError, IOError => error
        warn("the log cannot be opened anew, the former file is used on: #{error.message}")
      end

      def clean(text)
        text.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub("\n", "\\n").gsub(/[\x00-\x1f\x7f]/, "?")
      end
    end
  end
end
