# SPDX-License-Identifier: MIT
# frozen_string_literal: true

# Builds leat_ext.so from this folder and from the server's own base/ and board/ sources, so that both
# sides of the board are one text.
require "mkmf"

source = File.expand_path("../../src", __dir__)
base = %w[base span buf clock fd num ascii]
board = Dir[File.join(source, "board/*.c")].map { |path| File.basename(path, ".c") }.sort
own = Dir[File.join(__dir__, "*.c")].map { |path| File.basename(path, ".c") }.sort

abort "leat: the server's sources are missing: #{source}" unless File.exist?(File.join(source, "board/board.h"))

$srcs = own.map { |name| "#{name}.c" } + base.map { |name| "#{name}.c" } + board.map { |name| "#{name}.c" }
$objs = (own + base + board).map { |name| "#{name}.#{$OBJEXT}" }
$VPATH << File.join(source, "base") << File.join(source, "board")
$INCFLAGS << " -I#{source}"
$CFLAGS << " -std=gnu11 -O2 -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter" \
           " -Wno-declaration-after-statement"
$defs << "-D_GNU_SOURCE"
$warnflags = ""

create_makefile("leat/leat_ext")

# A gem brings the server along: it is built here, once. The Makefile of a checkout does that itself and
# runs this file from its build folder.
root = File.expand_path("../..", __dir__)
unless Dir.pwd.start_with?(File.join(root, "build/"))
  packages = "gcc make pkg-config ragel libssl-dev libnghttp2-dev libyaml-dev zlib1g-dev libbrotli-dev libzstd-dev"
  missing = %w[gcc make pkg-config ragel].reject { |name| find_executable(name) }
  unless missing.empty?
    abort "leat: #{missing.join(", ")} not found. Debian and Ubuntu: apt-get install #{packages}\n" \
          "(other systems: the packages of those tools and libraries), then install the gem again."
  end
  unless system("make", "-C", root, "build/leat")
    abort "leat: the server could not be built. Debian and Ubuntu: apt-get install #{packages}"
  end
end
