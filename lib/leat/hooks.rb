# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # The application's own steps in the life of its processes, from config/leat.rb:
  #
  #   before_fork { Redis.current.close }   # once, in the process that loaded the application
  #   after_fork  { |index| ... }           # in every worker before its first request
  #   before_exit { ... }                   # in every worker after its last request
  #
  # What a hook raises goes on, and remembers the hook for whoever is told (Fault).
  class Hooks
    FILE = "config/leat.rb"
    EVENTS = %i[before_fork after_fork before_exit].freeze
    # What other servers call the same moments.
    ELSEWHERE = {
      "on_worker_boot" => "after_fork", "before_worker_boot" => "after_fork", "after_worker_fork" => "after_fork",
      "on_refork" => "before_fork", "before_worker_fork" => "before_fork", "after_mold_fork" => "before_fork",
      "on_worker_shutdown" => "before_exit", "before_worker_shutdown" => "before_exit",
      "after_worker_shutdown" => "before_exit", "before_worker_exit" => "before_exit"
    }.freeze

    # In the file no hook of that name exists.
    class Unknown < NameError; end

    def self.load(folder)
      hooks = new
      path = File.join(folder, FILE)
      hooks.instance_eval(File.read(path, encoding: Encoding::UTF_8), path) if File.file?(path)
      hooks
    end

    # The hook that the exception came out of, or nil.
    def self.of(error)
      error.instance_variable_get(:@leat_hook)
    end

    def initialize
      @blocks = EVENTS.to_h { |event| [event, []] }
    end

    EVENTS.each do |event|
      define_method(event) do |&block|
        raise ArgumentError, "#{event} takes a block" unless block

        @blocks.fetch(event) << block
      end
    end

    def run(event, *arguments)
      @blocks.fetch(event).each { |block| block.call(*arguments) }
    rescue Exception => error # rubocop:disable Lint/RescueException
      error.instance_variable_set(:@leat_hook, event) unless error.frozen?
      raise
    end

    private

    def method_missing(name, *arguments, &block)
      return super unless block && arguments.empty?

      other = ELSEWHERE[name.to_s]
      raise Unknown, "no hook #{name}; #{other ? "it is #{other} here" : "there are #{EVENTS.join(", ")}"}", caller
    end

    def respond_to_missing?(_name, _include_all = false)
      false
    end
  end
end
