# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "binary"
require_relative "version"

module Leat
  # `rackup -s leat` and `rails server -u leat`: this process has loaded the application. A child of it
  # becomes the mold of generation 1; the process itself becomes the server, under its own PID.
  module RackHandler
    # What rackup says when its user says nothing.
    RACKUP_PORT = 9292
    RACKUP_HOSTS = ["localhost", "0.0.0.0", "127.0.0.1"].freeze
    # Options of `rackup -O NAME=VALUE` that the server has under the same name.
    PASSED = %i[workers threads log user group admin control].freeze

    module_function

    def run(app, **options)
      unless Thread.current == Thread.main
        raise "leat takes the place of this process and cannot run in a thread of it; " \
              "use another server here (Capybara.server = :puma, for example)"
      end

      given, defaults = sort(options)
      hand_over(app, arguments(given, options), variables(defaults))
    end

    def valid_options
      {
        "workers=N" => "worker processes: N, MIN..MAX or auto", "threads=N" => "threads of a worker (default: 3)",
        "log=FILE" => "the server's log", "admin=ADDRESS" => "status and metrics"
      }
    end

    # What the user asked for, and what rackup or Rails fill in: those lose to the configuration file.
    def sort(options)
      chosen = options.slice(:Port, :Host, :environment, :pid).compact
      user = options[:user_supplied_options]
      chosen.partition { |name, value| user ? user.include?(name) : !rackup_default?(name, value) }.map(&:to_h)
    end

    def rackup_default?(name, value)
      case name
      when :Port then value.to_i == RACKUP_PORT
      when :Host then RACKUP_HOSTS.include?(value)
      when :environment then true
      else false
      end
    end

    def arguments(given, options)
      list = ["start"]
      list.push("-p", given[:Port].to_s) if given[:Port]
      list.push("-b", given[:Host].to_s) if given[:Host]
      list.push("-e", given[:environment].to_s) if given[:environment]
      list.push("-P", File.expand_path(given[:pid])) if given[:pid]
      list.push("-R", File.expand_path(options[:config])) if other_rackup?(options[:config])
      PASSED.each { |name| list.push("--#{name}", options[name].to_s) if options[name] }
      list.push("-q") if options[:quiet]
      list
    end

    # A rackup file that is not the one the server would take anyway.
    def other_rackup?(path)
      path.is_a?(String) && File.file?(path) && File.expand_path(path) != File.expand_path("config.ru")
    end

    def variables(defaults)
      {
        "LEAT_DEFAULT_PORT" => defaults[:Port], "LEAT_DEFAULT_BIND" => defaults[:Host],
        "LEAT_DEFAULT_ENVIRONMENT" => defaults[:environment],
        "LEAT_DEFAULT_PID" => defaults[:pid] && File.expand_path(defaults[:pid])
      }.compact.transform_values(&:to_s)
    end

    def hand_over(app, arguments, variables)
      require_relative "boot"
      binary = Binary.find
      mine, its = Native.pair
      # The block form: what rackup or Rails would do after `run` is no business of the child.
      child = fork { become_mold(app, mine, its) }
      Native.close(its)
      Native.keep(mine, true)
      handed = { "LEAT_BINARY" => binary, "LEAT_CONTROL_FD" => mine.to_s, "LEAT_MOLD_PID" => child.to_s }
      Binary.exec(arguments, variables.merge(handed), close_others: false)
    rescue SystemCallError
      Process.kill(:KILL, child) if child
      raise
    end

    def become_mold(app, master, control)
      Native.close(master)
      leave_pid_file
      Boot.greet(control, loader: Loader.loaded(app, Dir.pwd))
    end

    # rackup removes its PID file at exit; it is the server's now.
    def leave_pid_file
      %w[Rackup::Server Rack::Server].each do |name|
        next unless Object.const_defined?(name)

        ObjectSpace.each_object(Object.const_get(name)) do |server|
          server.options = server.options.merge(pid: "/nonexistent") if server.options[:pid]
        end
      end
    end
  end
end
