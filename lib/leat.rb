# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "leat/version"

# `rails server` and `rackup` pick their server by this variable, and know only Puma, Falcon and WEBrick
# by themselves. A bundle with Puma in it keeps Puma.
if !ENV.key?("RACKUP_HANDLER") && !(defined?(Gem) && Gem.loaded_specs.key?("puma"))
  ENV["RACKUP_HANDLER"] = "leat"
end
