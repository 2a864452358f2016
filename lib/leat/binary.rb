# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # The server's binary: beside this gem, built when it was installed, or now.
  module Binary
    ROOT = File.expand_path("../..", __dir__)
    PATH = File.join(ROOT, "build/leat")

    module_function

    # Replaces this process by the server; the Ruby that runs now is the one for the application unless
    # the configuration names another.
    def exec(arguments, environment = {}, **options)
      environment = { "LEAT_RUBY" => ENV["LEAT_RUBY"] || RbConfig.ruby }.merge(environment)
      Kernel.exec(environment, [find, "leat"], *arguments, **options)
    end

    def find
      named = ENV["LEAT_BINARY"].to_s
      return named unless named.empty?

      build unless File.executable?(PATH)
      PATH
    end

    def build
      warn "leat: building #{PATH}"
      done = system("make", "-C", ROOT, "build/leat", out: :err)
      abort "leat: #{PATH} could not be built; see above" unless done && File.executable?(PATH)
    end
  end
end
