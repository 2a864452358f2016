# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # rack.errors: each line goes to the log with the worker's PID and the id of the request. One per
  # worker thread, never closed.
  class Errors
    attr_accessor :seat

    def initialize
      @part = "".b
    end

    def write(*texts)
      texts.sum { |text| add(text.to_s) }
    end

    def puts(*lines)
      lines = [""] if lines.empty?
      lines.flatten.each do |line|
        line = line.to_s
        add(line.end_with?("\n") ? line : "#{line}\n")
      end
      nil
    end

    def print(*texts)
      write(*texts)
      nil
    end

    def printf(*arguments)
      print(format(*arguments))
    end

    def <<(text)
      write(text)
      self
    end

    def flush
      add("\n") unless @part.empty?
      self
    end

    def close; end

    def closed?
      false
    end

    def sync
      true
    end

    def sync=(value); end

    def fsync
      0
    end

    def fileno
      STDERR.fileno
    end

    def tty?
      false
    end
    alias isatty tty?

    private

    def add(text)
      @part << text.b
      last = @part.rindex("\n")
      emit(@part.slice!(0..last)) if last
      text.bytesize
    end

    def emit(lines)
      mark = "worker #{Process.pid} id=#{@seat&.id} "
      STDERR.write(lines.each_line.map { |line| "#{mark}#{line}" }.join)
    rescue SystemCallError, IOError
      nil
    end
  end
end
