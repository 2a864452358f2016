# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# What the server starts, in the application's folder: a mold, or a worker that loads by itself. Nothing
# here or in the files it needs loads a gem or a part of the standard library, so that the application's
# bundle decides about every version.

require_relative "version"
require_relative "native"
%w[control fault log hooks loader errors dechunker stream hijack file_answer response backtraces worker excuse inherited
   warm_up mold].each { |name| require_relative name }

module Leat
  # The first steps of a Ruby process: who am I, and with which descriptors.
  module Boot
    FILE = File.expand_path(__FILE__)

    module_function

    def run
      control = ENV.delete("LEAT_CONTROL") or abort "leat: #{FILE} is started by the server only"
      control = Integer(control, 10)
      Native.keep(control, false)
      greet(control)
    end

    # Waits for hello and is what it says. End of file: whoever wanted this process changed its mind.
    def greet(control, loader: nil)
      verb, hello, descriptors = Control.receive(control)
      exit!(0) unless verb
      abort "leat: expected hello, got #{verb}" unless verb == "hello"
      start(hello, name(descriptors), real_control(hello, control), loader: loader)
    end

    # A mold that began again has read its greeting from a socket of its own making.
    def real_control(hello, socket)
      return socket unless hello["control"]

      Native.close(socket)
      control = Integer(hello.delete("control"), 10)
      Native.keep(control, false)
      control
    end

    # Runs the process to its end. A worker that has served throws its status here, past every rescue.
    def start(hello, fds, control, loader: nil)
      # What the application prints stands in the log at once, not when Ruby's buffer is full.
      $stdout.sync = $stderr.sync = true
      status = catch(:served) do
        guard(hello, fds, hello["index"]) do
          if hello["role"] == "mold"
            Mold.new(hello, fds, control, loader: loader).run
          else
            solo(hello, fds, control, loader)
          end
        end
      end
      exit(status)
    end

    # `ps` shows whose process this is, of which release, and what it does.
    def title(role, hello, state)
      Process.setproctitle("leat: #{role} #{hello["pool"]}@#{hello["generation"]} (#{File.basename(hello["app"])}) #{state}")
    end

    def serve(hello, fds, index, loader)
      guard(hello, fds, index) { throw(:served, Worker.new(hello, fds, index, loader).run) }
    end

    # What cannot be loaded, or cannot serve, is reported and ends the process.
    def guard(hello, fds, index)
      yield
    rescue Exception => error # rubocop:disable Lint/RescueException
      values = { "generation" => hello["generation"], "index" => index, **Fault.describe(error) }
      Control.send(fds[:report], "failed", values.compact)
      exit!(1)
    end

    # The descriptors of `hello` by name, and back.
    def name(list)
      { report: list[0], death: list[1], board: list[2], bells: list[3..] }
    end

    def list(fds)
      [fds[:report], fds[:death], fds[:board], *fds[:bells]]
    end

    def solo(hello, fds, control, loader)
      Native.close(control)
      Log.name("worker", hello["pool"])
      title("worker", hello, "starting")
      trap("INT") {}
      Worker.wait_until { Process.ppid == hello["master"].to_i }
      Worker.bind_to_master(hello, fds)
      return Excuse.serve(hello, fds) if loader.nil? && hello["excuse"]

      serve(hello, fds, hello["index"].to_i, loader || Loader.new(hello).load)
    end
  end
end

Leat::Boot.run if $PROGRAM_NAME == Leat::Boot::FILE || $PROGRAM_NAME == __FILE__
