# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "socket"

module Corpus
  # One final response as it was framed on the wire.
  Response = Struct.new(:status, :head, :headers, :body, :complete, :lengths) do
    def chunked? = headers["transfer-encoding"].to_s.match?(/chunked/i)

    # The length that the head gives, or nil.
    def length = Integer(headers["content-length"].to_s.split(",").first.to_s, 10, exception: false)

    def bodiless?(method) = method == "HEAD" || [101, 204, 304].include?(status)

    def two_lengths? = lengths.uniq.size > 1
  end

  # A client connection of a case: sends parts, reads and frames what comes back. What it cannot frame
  # is garbage, which no server may send.
  class Connection
    attr_reader :finals, :interims, :raw, :garbage

    RAW_KEPT = 2_000_000

    # source is the loopback address that the client speaks from, so that an inspector can tell who asked.
    def initialize(port, source:, methods: nil)
      @socket = Socket.tcp("127.0.0.1", port, source, 0, connect_timeout: 3)
      @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      @methods = methods || []
      @input, @raw = "".b, "".b
      @finals, @interims = [], []
      @closed = false
    end

    def closed? = @closed

    def shut = @socket.close

    # Sends all bytes; a server that answers early and closes ends it, one that takes nothing does after 8 s.
    def send_bytes(bytes)
      limit = now + 8
      until bytes.empty? || @closed || now > limit
        sent = @socket.write_nonblock(bytes, exception: false)
        sent == :wait_writable ? wait_writable : bytes = bytes.byteslice(sent..)
      end
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    end

    def half_close
      @socket.close_write
    rescue SystemCallError
      nil
    end

    # Each reads until what it names is there, the connection is over or the seconds are.
    def await_finals(count, seconds) = read_until(seconds) { @finals.size >= count || @garbage }

    def await_interim(status, seconds) = read_until(seconds) { @interims.include?(status) || @finals.any? }

    def listen(seconds) = read_until(seconds) { false }

    # At the end of the connection the response that runs until then is whole; one with a length is cut.
    def finish
      return unless @closed && @partial

      @partial.complete = !@partial.chunked? && @partial.length.nil?
      @finals << @partial
      @partial = nil
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def read_until(seconds)
      limit = now + seconds
      until @closed || yield
        left = limit - now
        break unless left.positive? && @socket.wait_readable(left)

        read_some
      end
    end

    def wait_writable
      readable, = IO.select([@socket], [@socket], nil, 0.2)
      read_some if readable&.any?
    end

    def read_some
      data = @socket.read_nonblock(262_144, exception: false)
      return if data == :wait_readable

      data.nil? ? @closed = true : take(data)
    rescue Errno::ECONNRESET, Errno::EPIPE
      @closed = true
    end

    def take(data)
      @input << data
      @raw << data if @raw.bytesize < RAW_KEPT
      nil while !@garbage && parse_step
    end

    # True when something was taken from the input and there may be more to take.
    def parse_step
      @partial ? parse_body : parse_head
    end

    def parse_head
      return spoil unless @input.start_with?("HTTP/1.") || "HTTP/1.".b.start_with?(@input)

      length = @input.index("\r\n\r\n") or return false
      head = @input.byteslice(0, length + 4)
      status = head[%r{\AHTTP/1\.[01] (\d{3})(?: |\r)}n, 1] or return spoil
      @input = @input.byteslice(head.bytesize..)
      begin_response(status.to_i, head)
      true
    end

    def begin_response(status, head)
      return @interims << status if status.between?(100, 199) && status != 101

      headers, lengths = fields(head)
      response = Response.new(status, head, headers, "".b, false, lengths)
      return @partial = response unless response.bodiless?(@methods[@finals.size])

      response.complete = true
      @finals << response
    end

    def fields(head)
      pairs = head.split("\r\n").drop(1).filter_map do |line|
        name, value = line.split(":", 2)
        [name.downcase, value.strip] if value
      end
      joined = pairs.group_by(&:first).transform_values { |list| list.map(&:last).join(", ") }
      [joined, pairs.filter_map { |name, value| value if name == "content-length" }]
    end

    def parse_body
      done = @partial.chunked? ? parse_chunk : parse_plain
      return done == :more unless done == true

      @partial.complete = true
      @finals << @partial
      @partial = nil
      true
    end

    def parse_plain
      length = @partial.length
      part = length ? @input.byteslice(0, length - @partial.body.bytesize) : @input
      @partial.body << part
      @input = @input.byteslice(part.bytesize..)
      @partial.body.bytesize == length
    end

    # One chunk: true after the last, :more after another, false while it is not all there.
    def parse_chunk
      line = @input.index("\r\n") or return false
      digits = @input.byteslice(0, line)[/\A\h+/] or return spoil
      return parse_trailers(line) if digits.to_i(16).zero?

      from, size = line + 2, digits.to_i(16)
      return false if @input.bytesize < from + size + 2

      @partial.body << @input.byteslice(from, size)
      @input = @input.byteslice((from + size + 2)..)
      :more
    end

    def parse_trailers(line)
      last = @input.index("\r\n\r\n", line) or return false
      @input = @input.byteslice((last + 4)..)
      true
    end

    def spoil
      @garbage = @input.byteslice(0, 60)
      false
    end
  end
end
