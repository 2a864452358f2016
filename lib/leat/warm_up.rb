# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # Before the first fork: what is there becomes old, compact and free of garbage, so that the first
  # collections in a worker write to little of it and the pages stay shared.
  module WarmUp
    AGE = 3 # collections that an object survives until it counts as old

    module_function

    def run
      Process.respond_to?(:warmup) ? Process.warmup : collect
      Native.trim
    end

    # What Process.warmup does from Ruby 3.3 on.
    def collect
      AGE.times { GC.start }
      GC.compact if GC.respond_to?(:compact)
    rescue NotImplementedError
      nil # compaction needs what this platform does not have
    ensure
      GC.start # frees what compaction has moved, which the first collection of every worker would do
    end
  end
end
