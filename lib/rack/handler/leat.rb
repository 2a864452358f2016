# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "rack/handler"
require_relative "../../leat/rack_handler"

module Rack
  # Rack 2 knows its handlers by the name of a constant.
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

    register "leat", "Rack::Handler::Leat"
  end
end
