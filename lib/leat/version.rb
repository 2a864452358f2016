# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  VERSION = "0.1.0" unless const_defined?(:VERSION, false)
end
