# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Builds leat_ext.so from this folder and from the server's own base/ and board/ sources, so that both
# sides of the board are one text. Run by RubyGems it builds the server as well.
require "mkmf"
require "open3"

root = File.expand_path("../..", __dir__)
source = File.join(root, "src")
# The Makefile of a checkout builds the server itself, and runs this file from its build folder.
is_gem = !Dir.pwd.start_with?(File.join(root, "build/"))

abort "leat: the server's sources are missing: #{source}" unless File.exist?(File.join(source, "board/board.h"))

# What the server is built with: a command of the shell that succeeds when it is there, and its package.
NEEDS = {
  "gcc" => ["command -v gcc", "gcc libc6-dev"], "make" => ["command -v make", "make"],
  "pkg-config" => ["command -v pkg-config", "pkg-config"], "ragel" => ["command -v ragel", "ragel"],
  "libyaml" => ["pkg-config --exists yaml-0.1", "libyaml-dev"],
  "zlib" => ["pkg-config --exists zlib", "zlib1g-dev"],
  "brotli" => ["pkg-config --exists libbrotlienc", "libbrotli-dev"],
  "zstd" => ["pkg-config --exists libzstd", "libzstd-dev"]
}.freeze

# All that is missing, in one line with its remedy.
def check_needs
  missing = NEEDS.reject { |_, (test, _)| Open3.capture2e("sh", "-c", test).last.success? }
  return if missing.empty?

  packages = missing.map { |_, (_, package)| package }.join(" ")
  abort "leat: #{missing.keys.join(", ")} not found. Debian and Ubuntu: apt-get install #{packages} " \
        "(elsewhere: the packages of these tools and libraries), then install the gem again."
end

# Only the binary stays: what it was made of would be three times the rest of the gem.
def build_server(root)
  abort "leat: the server could not be built, see above" unless system("make", "-C", root, "build/leat")

  FileUtils.rm_rf(%w[obj gen].map { |name| File.join(root, "build", name) })
end

check_needs if is_gem

base = %w[base span buf clock fd num ascii]
board = Dir[File.join(source, "board/*.c")].map { |path| File.basename(path, ".c") }.sort
own = Dir[File.join(__dir__, "*.c")].map { |path| File.basename(path, ".c") }.sort

$srcs = own.map { |name| "#{name}.c" } + base.map { |name| "#{name}.c" } + board.map { |name| "#{name}.c" }
$objs = (own + base + board).map { |name| "#{name}.#{$OBJEXT}" }
$VPATH << File.join(source, "base") << File.join(source, "board")
$INCFLAGS << " -I#{source}"
$CFLAGS << " -std=gnu11 -O2 -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter" \
           " -Wno-declaration-after-statement"
$defs << "-D_GNU_SOURCE"
$warnflags = ""

# One folder per ABI, as in a checkout: several Rubies may share a place for gems.
create_makefile("leat/#{RbConfig::CONFIG["ruby_version"]}/leat_ext")
build_server(root) if is_gem
