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
      Process.setproctitle("leat: mold #{@hello["pool"]}@#{@hello["generation"]}")
      set_traps
      Worker.bind_to_master(@hello, @fds)
      load if @preload
      begin_anew if @loader && !@preload
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
      watch = @hello["preload"] == "auto" ? SocketWatch : nil
      @loader ||= Loader.new(@hello).load { watch&.start }
      @loader.hooks.run(:before_fork)
      release_connections
      report_threads
      look_for_streams if watch
      warm_up if @preload && !@development
    end

    # Rails reconnects by itself after a fork; what it holds now would be shared.
    def release_connections
      return unless defined?(::ActiveRecord::Base)

      handler = ::ActiveRecord::Base.connection_handler
      if handler.method(:clear_all_connections!).arity.zero?
        handler.clear_all_connections!
      else
        handler.clear_all_connections!(:all)
      end
    rescue StandardError => error
      Log.exception(error, in: "clear_all_connections!")
    end

    # Threads that know how to start again in a fork say so by a variable, as Puma taught them; one that
    # has just been made gets a moment to do so.
    def report_threads
      (Thread.list - [Thread.main]).each do |thread|
        thread.join(0.05)
        next if thread.thread_variable_get(:fork_safe)

        Log.warn("a thread that was started while loading does not exist in the workers: #{thread.inspect}")
      end
    end

    def look_for_streams
      open = Native.streams - [@control, *@fds.values.flatten]
      return if open.empty?

      @preload = false
      @place = SocketWatch.place(open.first)
      @reason = "a connected socket is open after loading"
      Log.warn("#{@reason}#{" (#{@place})" if @place}: workers load by themselves; " \
               "close it in before_fork of config/leat.rb, or open it later")
    end

    # Old and compact objects stay shared; the first collection in a worker copies less.
    def warm_up
      return Process.warmup if Process.respond_to?(:warmup)

      3.times { GC.start }
      GC.compact if GC.respond_to?(:compact)
    rescue NotImplementedError
      nil
    end

    def loaded
      { "generation" => @hello["generation"], "preload" => @preload, "rack" => @loader&.rack || @hello["rack"],
        "ruby" => RUBY_VERSION, "private_bytes" => Native.private_bytes, "reason" => @hello["reason"],
        "place" => @hello["place"] }.compact
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
      start_over("preload" => "false", "rack" => @loader.rack, "reason" => @reason, "place" => @place,
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

  # Remembers which line of the application opened a connection.
  module SocketWatch
    @places = {}

    class << self
      def start
        require "socket"
        opener = Module.new do
          def initialize(*arguments, **options, &block)
            super
            SocketWatch.opened(self)
          end
        end
        connector = Module.new do
          def connect(*)
            super.tap { SocketWatch.opened(self) }
          end

          def connect_nonblock(*, **)
            super.tap { SocketWatch.opened(self) }
          end
        end
        [::TCPSocket, ::UNIXSocket].each { |kind| kind.prepend(opener) }
        ::Socket.prepend(connector)
      end

      def opened(socket)
        @places[socket.fileno] = Fault.first_own(caller(2))
      end

      def place(descriptor)
        @places[descriptor]
      end
    end
  end
end
