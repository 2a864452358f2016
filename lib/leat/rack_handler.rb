# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "binary"
require_relative "version"

module Leat
  # `rackup -s leat` and `rails server -u leat`: this process has loaded the application. A child of it
  # becomes the mold of generation 1; the process itself becomes the server, under its own PID.
  module RackHandler
    # Options of `rackup -O NAME=VALUE` that the server has under the same name.
    PASSED = %i[workers threads log user group admin control].freeze
    # The class whose object reads the command line of rackup, in the gem and in Rack 2.
    SERVERS = %w[Rackup::Server Rack::Server].freeze

    module_function

    def run(app, **options)
      unless Thread.current == Thread.main
        raise "leat takes the place of this process and cannot run in a thread of it; " \
              "use another server here (Capybara.server = :puma, for example)"
      end

      hand_over(app, arguments(options), defaults(options))
    end

    def valid_options
      {
        "workers=N" => "worker processes: N, MIN..MAX or auto", "threads=N" => "threads of a worker (default: 3)",
        "log=FILE" => "the server's log", "admin=ADDRESS" => "status and metrics"
      }
    end

    # What the user asked for, as the server's own options.
    def arguments(options)
      asked = asked_for(options)
      list = ["start"]
      list.push("-p", asked[:Port].to_s) if asked[:Port]
      list.push("-b", asked[:Host].to_s) if asked[:Host]
      list.push("-e", asked[:environment].to_s) if asked[:environment]
      list.push("-P", File.expand_path(asked[:pid])) if asked[:pid]
      list.push("-R", File.expand_path(options[:config])) if other_rackup?(options[:config])
      PASSED.each { |name| list.push("--#{name}", options[name].to_s) if options[name] }
      list.push("-q") if options[:quiet]
      # This process has left the terminal by now.
      list.push("-d") if options[:daemonize]
      list
    end

    # The options that somebody typed. PORT and BINDING, which Rails counts among them, the server reads
    # for itself.
    def asked_for(options)
      names = options[:user_supplied_options] || rackup_options&.keys || options.keys
      options.slice(*%i[Port Host environment pid] & names).compact.reject do |name, value|
        (name == :Port && value.to_s == ENV["PORT"]) || (name == :Host && value == ENV["BINDING"])
      end
    end

    # What rackup was told on its command line, without what it says by itself.
    def rackup_options
      rackup_servers.first&.instance_variable_get(:@options)
    end

    def rackup_servers
      SERVERS.select { |name| Object.const_defined?(name) }
             .flat_map { |name| ObjectSpace.each_object(Object.const_get(name)).to_a }
    end

    # What rackup and Rails say when their user says nothing: it loses to the configuration file. Their
    # hosts are those that the server has by itself.
    def defaults(options)
      {
        "LEAT_DEFAULT_PORT" => options[:Port], "LEAT_DEFAULT_ENVIRONMENT" => options[:environment],
        "LEAT_DEFAULT_PID" => options[:pid] && File.expand_path(options[:pid])
      }.compact.transform_values(&:to_s)
    end

    # A rackup file that is not the one the server would take anyway.
    def other_rackup?(path)
      path.is_a?(String) && File.file?(path) && File.expand_path(path) != File.expand_path("config.ru")
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
      rackup_servers.each do |server|
        server.options = server.options.merge(pid: "/nonexistent") if server.options[:pid]
      end
    end
  end
end
