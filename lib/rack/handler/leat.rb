# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "rack/handler"
require_relative "../../leat/rack_handler"

module Rack
  # Rack 2 knows its handlers by the name of a constant.
  module Handler
    Leat = ::Leat::RackHandler

    register "leat", "Rack::Handler::Leat"
  end
end
