# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Loads the extension that was built for this very Ruby: below this folder by ABI, or where RubyGems keeps
# extensions when it does not copy them there. No gem is activated by it.
module Leat
  extension = "leat_ext.#{RbConfig::CONFIG["DLEXT"]}"
  abi = RbConfig::CONFIG["ruby_version"]
  gem_folder = File.expand_path("../..", __dir__)
  beside = File.join(__dir__, abi, extension)
  apart = File.join(gem_folder, "../../extensions/*", abi, File.basename(gem_folder), "leat", abi, extension)
  found = [beside, *Dir[apart]].find { |path| File.exist?(path) }
  if found
    require found
  else
    ruby = File.join(RbConfig::CONFIG["bindir"], RbConfig::CONFIG["ruby_install_name"])
    abort "leat: no extension for #{ruby} #{RUBY_VERSION}; build it with: " \
          "make -C #{gem_folder} extension RUBY=#{ruby}"
  end
end
