# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # Takes the chunks off a body whose application did its own chunking (`transfer-encoding: chunked`):
  # the server frames every answer itself. A body that does not begin like a chunk passes as it is.
  class Dechunker
    LINE = /\A(\h{1,15})[ \t]*(?:;[^\r\n]*)?\r\n/n.freeze
    BEGIN_OF_LINE = /\A(?:\h{1,15}(?:[ \t]*(?:;[^\r\n]*)?\r?)?)?\z/n.freeze

    def initialize
      @rest = +"".b
      @left = 0
      @state = :start
    end

    # Yields the data in that part of the body.
    def feed(part, &block)
      return yield(part) if @state == :plain

      @rest << part.b
      nil while step(&block)
    end

    # The body is over; what was held back is data after all, or a chunk that never ended.
    def finish
      case @state
      when :start then yield(@rest) unless @rest.empty?
      when :end, :plain then nil
      else raise EOFError, "the body ended inside a chunk"
      end
    end

    private

    def step(&block)
      case @state
      when :start, :size then size_line(&block)
      when :data then data(&block)
      when :newline then newline
      end
    end

    def size_line
      match = LINE.match(@rest)
      unless match
        return false if BEGIN_OF_LINE.match?(@rest)
        raise ArgumentError, "a broken chunk in the body" unless @state == :start

        @state = :plain
        yield(@rest)
        return false
      end
      @rest = match.post_match
      @left = match[1].to_i(16)
      @state = @left.zero? ? :end : :data
      true
    end

    def data
      return false if @rest.empty?

      piece = @rest.slice!(0, @left)
      @left -= piece.bytesize
      @state = :newline if @left.zero?
      yield(piece)
      true
    end

    def newline
      return false if @rest.bytesize < 2
      raise ArgumentError, "a broken chunk in the body" unless @rest.slice!(0, 2) == "\r\n"

      @state = :size
      true
    end
  end
end
