# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # What a callable body is called with. Every write goes to the client at once; it raises Errno::EPIPE
  # when the client has left.
  class Stream
    def initialize(response, input)
      @response = response
      @input = input
      @can_read = @can_write = true
    end

    # Gives the stream to a callable and ends it behind what that has written; what it raises leaves the
    # end out, so that the client sees it.
    def run(callable)
      callable.call(self)
      close
      @response.finish
    end

    def read(*arguments)
      raise IOError, "not opened for reading" unless @can_read

      @input.read(*arguments)
    end

    def write(*parts)
      raise IOError, "closed stream" unless @can_write

      parts.sum do |part|
        part = part.to_s
        @response.part(part)
        part.bytesize
      end
    end

    def <<(part)
      write(part)
      self
    end

    def flush
      raise IOError, "closed stream" unless @can_write

      @response.flush
      self
    end

    def close_read
      @can_read = false
      nil
    end

    def close_write
      @can_write = false
      nil
    end

    def close(_error = nil)
      close_read
      close_write
    end

    def closed?
      !@can_read && !@can_write
    end

    def sync
      true
    end

    def sync=(value); end
  end

  # Where the stream of an answer writes that has a connection of its own: chunks (RFC 9112 7.1), one
  # system call each.
  class Chunks
    def initialize(io)
      @io = io
    end

    def part(text)
      @io.write(text.bytesize.to_s(16), "\r\n", text, "\r\n") unless text.empty?
    end

    def flush; end

    def finish
      @io.write("0\r\n\r\n")
      @io.close
    end
  end
end
