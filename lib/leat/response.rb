# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # Sends an answer that is not simply an Array of Strings (Seat#answer does those). The forms of a body
  # are tried in the order of the SPEC: to_ary, to_path, each, call. The body is closed exactly once on
  # every path.
  class Response
    def initialize(seat, env, status, headers, body, rack2: false)
      @seat = seat
      @env = env
      @status = status
      @headers = headers
      @body = body
      @rack2 = rack2
      @must_close = body.respond_to?(:close)
      @is_stream = false
      @is_begun = false
    end

    # Sends head and body; the request is answered when it returns. What the application raised passes
    # through, with the body closed and the request still held.
    def deliver
      error = nil
      begin
        unless @seat.hijacked?
          @flags = @seat.stage(@status, @headers)
          transmit
        end
      rescue Exception => error # rubocop:disable Lint/RescueException
        raise
      ensure
        close(error)
      end
      @seat.finish(false) if @seat.held?
    end

    # A part of the body, from each or through the stream object.
    def part(text)
      return if text.empty?

      if @dechunker
        @dechunker.feed(text) { |data| write(data) }
      else
        write(text)
      end
    end

    def flush
      begin_head
      @seat.flush
    end

    private

    def transmit
      return transmit_hijack if @flags & (Seat::HIJACK | Seat::UPGRADE) != 0
      return transmit_named_file if @flags & Seat::FILE != 0
      return transmit_array(@body) if Array === @body # rubocop:disable Style/CaseEquality
      return if transmit_converted || transmit_file

      if @flags & Seat::BODYLESS != 0 then @seat.head(nil, false)
      elsif @body.respond_to?(:each) then transmit_each
      elsif @body.respond_to?(:call) then open_ended? ? transmit_apart : transmit_call(@body)
      else raise TypeError, "a body must respond to each or call; this one is #{@body.class}"
      end
    end

    # Rack 3: to_ary gives what each would, and closes the body itself. Rack 2 promises neither.
    def transmit_converted
      return false if @rack2 || !@body.respond_to?(:to_ary)

      parts = @body.to_ary
      return false if parts.nil?

      @must_close = false
      transmit_array(parts)
      true
    end

    def transmit_array(parts)
      parts.each { |part| check(part) }
      return transmit_parts(parts) if @flags & (Seat::CHUNKED | Seat::EVENTS) != 0 && @flags & Seat::BODYLESS == 0

      size = parts.sum(&:bytesize)
      length = size if add_length?(size)
      @seat.head(length, false)
      parts.each { |part| @seat.write(part) } unless @flags & Seat::BODYLESS != 0
    end

    def add_length?(size)
      @flags & (Seat::LENGTH | Seat::CHUNKED) == 0 && @status.to_i != 204 && @status.to_i != 304 &&
        (size.positive? || @flags & Seat::BODYLESS == 0)
    end

    def transmit_file
      @body.respond_to?(:to_path) && @status.to_i == 200 &&
        FileAnswer.new(@seat, @status, @headers).deliver(@body.to_path)
    end

    def transmit_named_file
      return @seat.head(nil, false) if [204, 304].include?(@status.to_i)

      FileAnswer.new(@seat, @status, @headers).deliver_named
    end

    def transmit_each
      transmit_parts(@body)
    end

    def transmit_parts(parts)
      start_stream if @flags & Seat::LENGTH == 0 || @flags & Seat::EVENTS != 0
      flush if @flags & Seat::EVENTS != 0
      parts.each do |part|
        check(part)
        part(part)
      end
      end_parts
    end

    def start_stream
      @is_stream = true
      @dechunker = Dechunker.new if @flags & Seat::CHUNKED != 0
    end

    def end_parts
      @dechunker&.finish { |data| write(data) }
      @seat.head(@flags & Seat::LENGTH == 0 ? 0 : nil, false) unless @is_begun
    end

    def transmit_call(callable)
      start_stream
      flush if @flags & Seat::EVENTS != 0
      stream = Stream.new(self, @env["rack.input"])
      begin
        callable.call(stream)
      ensure
        stream.close
      end
      end_parts
    end

    # The connection itself follows the head. A callable in the header of that name takes the place of the
    # body, which is only closed. The slot is free at once; the worker's thread as well, unless the
    # callable is a body that must be closed by the thread that made it.
    def transmit_hijack
      callable = field("rack.hijack")
      return @seat.head(nil, false) if @flags & (Seat::BODYLESS | Seat::UPGRADE) == Seat::BODYLESS

      is_apart = callable || !@must_close
      callable ||= @body
      unless callable.respond_to?(:call)
        raise ArgumentError, "#{@status} is an answer only with a body or a rack.hijack to call"
      end

      io = Streams.open(@seat.tunnel(protocol, @flags & Seat::CHUNKED != 0))
      id = @seat.id
      @seat.finish(false)
      is_apart ? Streams.serve(io, callable, id) : Streams.call(io, callable, id)
    end

    # Events end when the client has enough of them: they shall not hold a thread of the worker until
    # then. A body that must be closed belongs to the thread that made it, and one that may read the
    # request to the slot; to HTTP/1.0 only the front can show that an answer was cut.
    def open_ended?
      @flags & (Seat::EVENTS | Seat::LENGTH | Seat::CHUNKED) == Seat::EVENTS && !@must_close &&
        @seat.tunnel? && @env["CONTENT_LENGTH"].to_i.zero? && @env["SERVER_PROTOCOL"] == "HTTP/1.1"
    end

    def transmit_apart
      io = Streams.open(@seat.tunnel(nil, true))
      stream = Stream.new(Chunks.new(io), @env["rack.input"])
      id = @seat.id
      @seat.finish(false)
      body = @body
      Streams.serve(io, ->(_) { stream.run(body) }, id)
    end

    # The protocol of an answer that names none, of those that the client would take (SPEC).
    def protocol
      offered = @env["rack.protocol"]
      chosen = field("rack.protocol")
      return offered&.first unless chosen
      return chosen if offered&.include?(chosen)

      raise ArgumentError, "the client did not ask for the protocol #{chosen.inspect}"
    end

    def field(key)
      found = nil
      @headers.each { |name, value| found = value if name == key }
      found
    end

    def check(part)
      return if part.is_a?(String)

      raise TypeError, "a body must consist of Strings; this part is #{part.class}"
    end

    def begin_head
      return if @is_begun

      @seat.head(nil, @is_stream)
      @is_begun = true
    end

    def write(text)
      begin_head
      @seat.write(text)
      @seat.flush if @is_stream
    end

    # An exception in close is the application's, but the answer was whole: it is only logged. It never
    # hides the one that came first.
    def close(earlier)
      return unless @must_close

      @must_close = false
      begin
        @seat.flush if @is_begun && earlier.nil?
        @body.close
      rescue StandardError, ScriptError => error
        raise error unless earlier || !@seat.held? || @seat.head_put? || @seat.hijacked?

        Log.exception(error, id: @seat.id, in: "close") unless error.is_a?(ClientGone)
      end
    end
  end
end
