# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "rackup/handler"
require_relative "../../leat/rack_handler"

module Rackup
  module Handler
    # A module of its own: Rails prints its name.
    module Leat
      def self.run(app, **options)
        ::Leat::RackHandler.run(app, **options)
      end

      def self.valid_options
        ::Leat::RackHandler.valid_options
      end
    end

    register :leat, Leat
  end
end
