# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # The application's own steps in the life of its processes, from config/leat.rb:
  #
  #   before_fork { Redis.current.close }   # once, in the process that loaded the application
  #   after_fork  { |index| ... }           # in every worker before its first request
  #   before_exit { ... }                   # in every worker after its last request
  class Hooks
    EVENTS = %i[before_fork after_fork before_exit].freeze

    def self.load(folder)
      hooks = new
      path = File.join(folder, "config/leat.rb")
      hooks.instance_eval(File.read(path), path) if File.file?(path)
      hooks
    end

    def initialize
      @blocks = EVENTS.to_h { |event| [event, []] }
    end

    EVENTS.each do |event|
      define_method(event) { |&block| @blocks.fetch(event) << block }
    end

    def run(event, *arguments)
      @blocks.fetch(event).each { |block| block.call(*arguments) }
    end
  end
end
