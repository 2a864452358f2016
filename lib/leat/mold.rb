# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # A mold has the application loaded and forks workers from its warm memory; it serves nothing itself.
  # When the application keeps connections open that cannot be shared, each worker loads by itself.
  class Mold
    def initialize(hello, fds, control, loader: nil)
      @hello = hello
      @fds = fds
      @control = control
      @loader = loader
      @environment = ENV.to_h
      @development = hello["environment"] == "development"
      # In development nothing is forked, unless there is an application already: as `rails server` and
      # rackup set it up (log on the terminal, middleware) it is in this process only.
      @preload = hello["preload"] != "false" || (@development && !loader.nil?)
    end

    def run
      Log.name("mold", @hello["pool"])
      Boot.title("mold", @hello, "loading")
      set_traps
      Worker.bind_to_master(@hello, @fds)
      load if @preload
      begin_anew if @loader && !@preload
      Boot.title("mold", @hello, "ready")
      Control.send(@fds[:report], "loaded", loaded)
      obey
    end

    private

    def set_traps
      trap("INT") {}
      trap("HUP") { Log.reopen_soon(@hello["log"]) }
      # It may be meant for the whole process group, while requests still wait for a worker.
      trap("TERM") {}
    end

    def load
      @loader ||= Loader.new(@hello).load { SocketWatch.start if @preload }
      @loader.hooks.run(:before_fork)
      Inherited.release_connections
      Inherited.report_threads
      look_for_streams
      SocketWatch.stop
      WarmUp.run if @preload && !@development
    end

    # With `auto` workers must not share them and load by themselves, which master tells; whoever has said
    # `true` is warned.
    def look_for_streams
      open = @development ? [] : Inherited.streams([@control, *@fds.values.flatten])
      return if open.empty?

      if @hello["preload"] == "auto"
        @preload = false
        @reason = Inherited.describe_streams(open)
      else
        Log.warn("#{Inherited.describe_streams(open)}: all workers share it; close it in before_fork of #{Hooks::FILE}")
      end
    end

    def loaded
      { "generation" => @hello["generation"], "preload" => @preload, "rack" => @loader&.rack || @hello["rack"],
        "ruby" => RUBY_VERSION, "private_bytes" => Native.private_bytes, "reason" => @hello["reason"] }.compact
    end

    def obey
      loop do
        verb, values = Control.receive(@control)
        case verb
        when nil, "quit" then exit!(0)
        when "fork" then fork_worker(values["index"].to_i)
        end
      end
    end

    # Forks twice, so that the worker becomes master's child; the process between leaves at once.
    def fork_worker(index)
      reader, writer = IO.pipe
      middle = Process.fork
      unless middle
        reader.close
        between(writer, index)
      end
      writer.close
      pid = reader.read
      Process.wait(middle)
      report_fork(index, pid)
    rescue SystemCallError => error
      report_fork(index, error.message)
    ensure
      reader&.close
      writer&.close
    end

    def between(writer, index)
      child = Process.fork
      if child
        writer.write(child.to_s)
        exit!(0)
      end
      writer.close
      become_worker(index)
    rescue SystemCallError => error
      writer.write(error.message)
      exit!(1)
    end

    def report_fork(index, pid)
      values = { "generation" => @hello["generation"], "index" => index }
      if pid.match?(/\A\d+\z/)
        Control.send(@fds[:report], "forked", values.merge("pid" => pid))
      else
        Control.send(@fds[:report], "unforked", values.merge("message" => pid))
      end
    end

    def become_worker(index)
      load_anew(index) unless @preload
      Native.close(@control)
      Boot.serve(@hello, @fds, index, @loader)
    end

    # The worker starts from nothing under the PID that was reported.
    def load_anew(index)
      start_over("role" => "worker", "index" => index)
    end

    # The application that was loaded serves nobody; a mold without it forks as well, and is small.
    def begin_anew
      Native.keep(@control, true)
      start_over("preload" => "false", "rack" => @loader.rack, "reason" => @reason,
                 "control" => @control)
    end

    # This process begins again with the environment it was given, greeted by what waits in its socket.
    def start_over(values)
      mine, its = Native.pair
      Control.send(mine, "hello", @hello.merge(values.compact.transform_values(&:to_s)), Boot.list(@fds))
      Native.keep(its, true)
      exec(@environment.merge("LEAT_CONTROL" => its.to_s), RbConfig.ruby, Boot::FILE,
           unsetenv_others: true, close_others: false)
    end
  end
end
