# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # Messages to and from the server: a verb line, then key=value lines. A newline inside a value is
  # written \n, a backslash \\.
  module Control
    LIMIT = 48_000 # bytes of one message; the socket takes no larger one than its buffer

    module_function

    # Waits for one message: [verb, {key => value}, [descriptor, ...]], or nil at the end of file.
    def receive(socket)
      text, descriptors = Native.receive(socket)
      text && [*parse(text), descriptors]
    end

    def send(socket, verb, values = {}, descriptors = [])
      Native.send(socket, format(verb, values), descriptors)
    end

    def parse(text)
      verb, *lines = text.split("\n")
      values = lines.to_h do |line|
        key, value = line.split("=", 2)
        [key, value.to_s.gsub(/\\(.)/m) { $1 == "n" ? "\n" : $1 }]
      end
      [verb, values]
    end

    def format(verb, values)
      room = LIMIT / [values.size, 1].max
      lines = values.map do |key, value|
        text = value.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").byteslice(0, room).scrub("")
        "#{key}=#{text.gsub("\\") { "\\\\" }.gsub("\n") { "\\n" }}\n"
      end
      "#{verb}\n#{lines.join}"
    end
  end
end
