# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "rack/handler"
require_relative "../../leat/rack_handler"

module Rack
  # Rack 2 knows its handlers by the name of a constant.
  module Handler
    # A module of its own: Rails prints its name.
    Leat = ::Leat::RackHandler.clone

    register "leat", "Rack::Handler::Leat"
  end
end
