# SPDX-License-Identifier: MIT
# frozen_string_literal: true

require_relative "lib/leat/version"

Gem::Specification.new do |spec|
  spec.name = "leat"
  spec.version = Leat::VERSION
  spec.summary = "A web server in C for Ruby applications"
  spec.description = "Serves Rack and Rails applications and files over HTTP: one C process for every connection, " \
                     "Ruby workers forked from a warm process, one fair queue between them."
  spec.authors = ["The Leat authors"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir.chdir(__dir__) do
    Dir["src/**/*.{c,h,def,rl,md}", "ext/leat/*.{c,h,def,rb}", "lib/**/*.rb", "exe/leat", "tools/deps.sh",
        "docs/**/*.md", "Makefile", "README.md", "CHANGES.md", "LICENSE"].select { |path| File.file?(path) }
  end
  spec.bindir = "exe"
  spec.executables = ["leat"]
  spec.extensions = ["ext/leat/extconf.rb"]
  spec.require_paths = ["lib"]
  spec.metadata = { "rubygems_mfa_required" => "true" }
end
