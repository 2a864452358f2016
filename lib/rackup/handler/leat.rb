# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require "rackup/handler"
require_relative "../../leat/rack_handler"

module Rackup
  module Handler
    Leat = ::Leat::RackHandler

    register :leat, Leat
  end
end
