# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "json"
require "socket"

module Corpus
  # Asks the inspector application what it saw of one client address.
  class Inspector
    def initialize(port, source)
      @port, @source = port, source
    end

    def reset = ask("/__reset")

    # The requests that reached the application since the reset, oldest first.
    def seen = ask("/__seen").last.lines.map { |line| JSON.parse(line) }

    # A field of the answer for path, for conditional requests.
    def field(path, name) = ask(path).first[/^#{name}: *([^\r]*)/i, 1].to_s

    private

    # HTTP/1.0, so that the body is what comes after the head.
    def ask(path)
      socket = Socket.tcp("127.0.0.1", @port, @source, 0, connect_timeout: 3)
      socket.write("GET #{path} HTTP/1.0\r\nHost: localhost\r\n\r\n")
      socket.timeout = 10 if socket.respond_to?(:timeout=)
      head, body = socket.read.split("\r\n\r\n", 2)
      raise "#{path}: #{head}" unless head.to_s.match?(%r{\AHTTP/1\.[01] 200 })

      [head, body]
    ensure
      socket&.close
    end
  end
end
