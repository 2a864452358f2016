# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "leat/version"

# `rails server` and `rackup` pick their server by a variable (Rack 2 by the second one), and know only
# Puma, Falcon and WEBrick by themselves. A bundle with Puma in it keeps Puma.
unless defined?(Gem) && Gem.loaded_specs.key?("puma")
  %w[RACKUP_HANDLER RACK_HANDLER].each { |name| ENV[name] ||= "leat" }
end
