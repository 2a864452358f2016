# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # An answer that is a regular file. It is opened here, with the application's rights, and sent by the
  # front, with validators and ranges, while this thread goes on.
  class FileAnswer
    NAMES = %w[x-sendfile x-lighttpd-send-file].freeze
    # How files in a coding begin. Middleware may have coded the empty body that came with the header.
    BEGINNINGS = { "gzip" => "\x1F\x8B".b, "x-gzip" => "\x1F\x8B".b, "zstd" => "\x28\xB5\x2F\xFD".b }.freeze

    def initialize(seat, status, headers)
      @seat = seat
      @status = status
      @headers = headers
    end

    # The path that a field names in place of the body.
    def named
      @headers.each { |name, value| return Array(value).first.to_s if NAMES.include?(name.to_s.downcase) }
      nil
    end

    # Sends the file at that path; false when it is none that can be sent, and nothing was.
    def deliver(path)
      file = open_regular(path) or return false
      begin
        return false unless @seat.pass(file.fileno)

        @seat.stage(@status, fields(file))
        @seat.head(file.size, false)
        @seat.file(0, file.size)
      ensure
        file.close
      end
      true
    end

    # The same, or what says that there is no such file: there is no other body.
    def deliver_named
      path = named
      return if deliver(path)

      Log.warn("x-sendfile names no file that can be read: #{path.inspect}, answered 404", id: @seat.id)
      @seat.stage(404, { "content-type" => "text/plain" })
      @seat.head(NOTHING.bytesize, false)
      @seat.write(NOTHING)
    end

    NOTHING = "Not Found\n"
    private_constant :NOTHING

    private

    # NONBLOCK: opening a FIFO must not wait for its writer.
    def open_regular(path)
      return unless path.respond_to?(:to_str)

      file = File.open(path.to_str, File::RDONLY | File::NONBLOCK | File::BINARY)
      return file if file.stat.file?

      file.close
      nil
    rescue SystemCallError, ArgumentError # a NUL in the path
      nil
    end

    # The file's length is its own, and so is its coding.
    def fields(file)
      @headers.to_enum(:each).map { |name, value| [name, value] }.reject do |name, value|
        case name.to_s.downcase
        when "content-length", "x-sendfile", "x-lighttpd-send-file" then true
        when "content-encoding" then !coded?(file, value.to_s.strip.downcase)
        end
      end
    end

    def coded?(file, coding)
      beginning = BEGINNINGS[coding]
      beginning.nil? || file.pread(beginning.bytesize, 0) == beginning
    rescue EOFError, SystemCallError
      false
    end
  end
end
