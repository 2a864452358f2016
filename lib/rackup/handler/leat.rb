# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "rackup/handler"
require_relative "../../leat/rack_handler"

module Rackup
  module Handler
    # A module of its own: Rails prints its name.
    Leat = ::Leat::RackHandler.clone

    register :leat, Leat
  end
end
