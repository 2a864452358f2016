# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # What a loaded application holds that a fork does not stand: connections, which all workers would
  # share, and threads, which none of them would have.
  module Inherited
    LISTED = 5 # places of each kind that are named

    module_function

    # Rails reconnects by itself after a fork; what it holds now would be shared. Every database of every
    # role and shard.
    def release_connections
      return unless defined?(::ActiveRecord::Base) && !::ActiveRecord.autoload?(:Base)

      record_pools(::ActiveRecord::Base.connection_handler).each(&:disconnect!)
    rescue StandardError => error
      Log.exception(error, in: "disconnecting ActiveRecord before the fork")
    end

    # Rails 6.1 and 7.0 list the pools of one role unless they are asked for all; from 7.1 on that question
    # is deprecated, as the list is of all.
    def record_pools(handler)
      return handler.connection_pool_list(:all) if record_version >= 701
      return handler.all_connection_pools if handler.respond_to?(:all_connection_pools)

      handler.connection_pool_list
    end

    def record_version
      (::ActiveRecord::VERSION::MAJOR * 100) + ::ActiveRecord::VERSION::MINOR
    end

    # Threads that know how to start again in a fork say so by a variable, as Puma taught them; one that
    # has just been made gets a moment to do so.
    def report_threads
      threads = (Thread.list - [Thread.main]).reject do |thread|
        thread.join(0.05) || thread.thread_variable_get(:fork_safe)
      end
      return if threads.empty?

      Log.warn("#{threads.size == 1 ? "a thread was" : "#{threads.size} threads were"} started while loading and " \
               "will not exist in the workers: #{list(threads.map { |thread| thread_place(thread) })}; " \
               "start #{threads.size == 1 ? "it" : "them"} in after_fork of #{Hooks::FILE}")
    end

    # "/srv/shop/config.ru:3 (name)" of "#<Thread:0x00007f@name /srv/shop/config.ru:3 sleep>".
    def thread_place(thread)
      place = thread.inspect[/\A#<\S*Thread:0x\h+(?:@.*?)? (\S.*:\d+) [a-z_ ]+>\z/, 1] || thread.inspect
      thread.name ? "#{place} (#{thread.name})" : place
    end

    # Connected streams that are none of ours, as [descriptor, place or nil].
    def streams(ours)
      (Native.streams - ours).map { |descriptor| [descriptor, SocketWatch.place(descriptor)] }
    end

    # "a connected socket is open after loading (config.ru:4)"
    def describe_streams(streams)
      places = streams.filter_map(&:last)
      what = streams.size == 1 ? "a connected socket is" : "#{streams.size} connected sockets are"
      "#{what} open after loading#{" (#{list(places)})" unless places.empty?}"
    end

    def list(places)
      shown = places.tally.map { |place, count| count > 1 ? "#{place} (#{count} times)" : place }
      more = shown.size - LISTED
      [*shown.first(LISTED), ("#{more} more" if more.positive?)].compact.join(", ")
    end
  end

  # Remembers which line of the application opened a connection, while the application loads.
  module SocketWatch
    METHODS = [["TCPSocket", :initialize], ["UNIXSocket", :initialize], ["Socket", :connect],
               ["Socket", :connect_nonblock]].freeze

    @places = nil

    class << self
      def start
        require "socket"
        @places = {}
        METHODS.each { |name, method| watch(Object.const_get(name), method) }
      end

      # The application is loaded: what it opens from now on is its own.
      def stop
        @places = nil
      end

      # The line that opened what has that descriptor, or nil.
      def place(descriptor)
        @places && @places[descriptor]
      end

      def opened(socket)
        @places[socket.fileno] = Fault.first_own(caller(3)) if @places && !socket.closed?
      end

      private

      # A library such as resolv-replace keeps a method under another name and calls that from one of the
      # same name. What it has kept is this here, and must not begin with its caller again.
      def watch(kind, name)
        original = kind.instance_method(name)
        kind.prepend(Module.new do
          define_method(name) do |*arguments, **options, &block|
            within = Thread.current[:leat_opening]
            next original.bind_call(self, *arguments, **options, &block) if within.equal?(self)

            begin
              Thread.current[:leat_opening] = self
              result = super(*arguments, **options, &block)
            ensure
              Thread.current[:leat_opening] = within
            end
            SocketWatch.opened(self)
            result
          end
        end)
      end
    end
  end
end
