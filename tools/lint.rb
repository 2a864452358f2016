#!/usr/bin/env ruby
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The rules of the house that a machine can check, one line per finding: `file:line: rule: words`.
# Then cppcheck and clang-tidy. Plain Ruby, no gems.
#
# usage: tools/lint.rb [--quick]      --quick leaves the two analysers out

require "etc"
require "open3"
require "ripper"

# The files are UTF-8, whatever the locale.
Encoding.default_external = Encoding::UTF_8

ROOT = File.expand_path("..", __dir__)
Dir.chdir(ROOT)

# Sizes that nothing may exceed.
FILE_LINES = 600
FUNCTION_LINES = 70

# Calls that are easy to get wrong, with what stands in their place.
BANNED_CALLS = {
  "strcpy" => "span, buf or memcpy", "strcat" => "buf_append", "sprintf" => "snprintf or buf_printf",
  "vsprintf" => "vsnprintf", "strtok" => "span_split", "atoi" => "num_decimal", "atol" => "num_decimal",
  "strtol" => "num_decimal", "alloca" => "the arena", "gets" => "fd_read_all"
}.freeze

# Sources without a unit test of their own, and why. A folder ends in a slash.
WITHOUT_UNIT_TEST = {
  "src/cli/" => "verbs are tested as a user runs them, in test/system",
  "src/master/" => "the glue between processes is tested with real ones, in test/system and test/crash"
}.freeze

# The checks left out do not know that a negative errno is negative or that a removed link is out of
# its list, and guess about memory that the sanitizers watch in the tests.
TIDY_CHECKS = %w[
  -* bugprone-* clang-analyzer-*
  -bugprone-easily-swappable-parameters -bugprone-narrowing-conversions -bugprone-macro-parentheses
  -bugprone-reserved-identifier -bugprone-branch-clone -bugprone-implicit-widening-of-multiplication-result
  -bugprone-assignment-in-if-condition -bugprone-not-null-terminated-result -bugprone-sizeof-expression -bugprone-suspicious-include
  -clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling
  -clang-analyzer-optin.performance.Padding -clang-analyzer-unix.Malloc
  -clang-analyzer-core.CallAndMessage -clang-analyzer-core.UndefinedBinaryOperatorResult
  -clang-analyzer-core.NullDereference -clang-analyzer-core.NonNullParamChecker
].join(",").freeze

C_FILES = Dir["{src,ext,test}/**/*.{c,h,rl}"].sort.freeze
RUBY_FILES = (Dir["{lib,tools,test,ext,bench}/**/*.rb"] + Dir["exe/*"] + Dir["*.gemspec"]).sort.freeze

$findings = []

def find(file, line, rule, words)
  $findings << format("%s:%d: %s: %s", file, line, rule, words)
end

# C text with the contents of comments and literals blanked; lines and columns stay.
def bare_c(text)
  text.gsub(%r{/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'}m) do |part|
    part.start_with?("/*") ? part.gsub(/[^\n]/, " ") : part[0] + " " * (part.size - 2) + part[-1]
  end
end

def check_size(file, lines)
  return if lines.size <= FILE_LINES

  find(file, FILE_LINES + 1, "size", "#{lines.size} lines, at most #{FILE_LINES}: split it by reasons to change")
end

def check_licence(file, lines, mark)
  return if lines.first(4).any? { |line| line.start_with?("#{mark} SPDX-License-Identifier: MIT") }

  find(file, 1, "licence", "the SPDX line is missing")
end

def check_unfinished(file, lines)
  lines.each.with_index(1) do |line, number|
    find(file, number, "unfinished", "#{$1} without an issue number") if line =~ /\b(TO[D]O|FIX[M]E|X[X]X)\b(?!.*#\d)/
  end
end

# A function is what stands between braces in the first column; tables open theirs behind a `=`.
def check_c_functions(file, lines)
  start = nil
  lines.each.with_index(1) do |line, number|
    start = number if line.start_with?("{")
    next unless line.rstrip == "}" && start

    length = number - start - 1
    find(file, start, "function", "#{length} lines, at most #{FUNCTION_LINES}") if length > FUNCTION_LINES
    start = nil
  end
end

def check_calls(file, bare_lines)
  in_test = file.start_with?("test/")
  bare_lines.each.with_index(1) do |line, number|
    line.scan(/(?<![\w.>])(\w+)\s*\(/) do |(name)|
      find(file, number, "banned", "#{name}: use #{BANNED_CALLS[name]}") if BANNED_CALLS.key?(name)
      find(file, number, "banned", "#{name} in a test: wait for an event") if in_test && %w[sleep usleep].include?(name)
    end
    find(file, number, "comment", "only /* this form */ is used") if line.include?("//")
  end
end

def layers
  @layers ||= File.readlines("tools/layers.txt").grep(/\A\w+:/).to_h do |line|
    name, allowed = line.split(":")
    [name, allowed.split]
  end
end

def check_ladder(file, lines)
  folder = file.start_with?("ext/") ? "ext" : file[%r{\Asrc/(\w+)/}, 1]
  return unless folder

  allowed = layers.fetch(folder) { return find(file, 1, "ladder", "#{folder}/ is not in tools/layers.txt") }
  lines.each.with_index(1) do |line, number|
    next unless line =~ /\A\s*#\s*include\s+"([^"]+)"/

    target = $1
    other = target.include?("/") ? target.split("/").first : nil
    next if other == folder || allowed.include?(other) || (folder == "ext" && other.nil?)

    words = other ? "#{folder} may not include #{target}" : "#{target} must be named with its folder"
    find(file, number, "ladder", words)
  end
end

def check_includes(file, lines)
  includes = lines.each.with_index(1).filter_map { |line, number| [$1, number] if line =~ /\A\s*#\s*include\s+([<"].*[>"])/ }
  ctype = includes.find { |name, _| name == "<ctype.h>" }
  find(file, ctype[1], "banned", "ctype.h knows locales: use base/ascii.h") if ctype && !file.include?("base/ascii")

  header = file.sub(/\.(c|rl)\z/, ".h")
  return unless file.start_with?("src/") && header != file && File.exist?(header)

  own = "\"#{header.delete_prefix('src/')}\""
  return if includes.empty? || includes.first[0] == own

  find(file, includes.first[1], "own header", "#{own} comes first")
end

def check_c(file)
  text = File.read(file)
  lines = text.lines
  check_size(file, lines)
  check_licence(file, lines, "/*")
  check_unfinished(file, lines)
  check_c_functions(file, lines)
  check_calls(file, bare_c(text).lines) unless file.end_with?(".rl")
  check_ladder(file, lines)
  check_includes(file, lines)
end

def check_ruby_methods(file, lines)
  starts = {}
  lines.each.with_index(1) do |line, number|
    if line =~ /\A(\s*)def (?!.*\) = )/
      starts[$1] = number
    elsif line =~ /\A(\s*)end\b/ && (start = starts.delete($1))
      length = number - start - 1
      find(file, start, "function", "#{length} lines, at most #{FUNCTION_LINES}") if length > FUNCTION_LINES
    end
  end
end

# Only the helper waits; an application inside a string may do as it likes.
def check_sleep(file, text)
  return unless file.start_with?("test/") && file != "test/server_case.rb"

  Ripper.lex(text).each do |(line, _), type, token|
    find(file, line, "banned", "sleep in a test: wait for an event") if type == :on_ident && token == "sleep"
  end
end

def check_ruby(file)
  text = File.read(file)
  lines = text.lines
  check_size(file, lines)
  check_licence(file, lines, "#")
  check_unfinished(file, lines)
  check_ruby_methods(file, lines)
  check_sleep(file, text)
end

def code_sources
  Dir["src/**/*.c"] + Dir["src/**/*.rl"].select { |file| File.read(file).match?(/^\s*%% *write/) }
end

def check_mirrors
  code_sources.sort.each do |source|
    next if WITHOUT_UNIT_TEST.keys.any? { |path| path.end_with?("/") ? source.start_with?(path) : source == path }

    test = source.sub(/\Asrc/, "test/unit").sub(/\.\w+\z/, "_test.c")
    find(source, 1, "test", "#{test} is missing") unless File.exist?(test)
  end
end

# The rows of a table, each with its line and its arguments as text.
def rows(text)
  text.enum_for(:scan, /^ROW\w*\(/).filter_map do
    start = Regexp.last_match.begin(0)
    rest = text[start..]
    row = rest[/\AROW\w*(\((?:"(?:\\.|[^"\\])*"|[^()"]|\g<1>)*\))/m]
    [text[0...start].count("\n") + 1, row || rest.lines.first]
  end
end

# The help text is the last argument: a string of at least some words.
def check_directives(file = "src/config/directive.def")
  return unless File.exist?(file)

  rows(File.read(file)).each do |line, row|
    help = row[/((?:"(?:\\.|[^"\\])*"\s*)+)\)\z/m, 1].to_s.scan(/"((?:\\.|[^"\\])*)"/).join
    find(file, line, "help", "the directive has no help text") if help.split.size < 2
  end
end

def check_format
  files = C_FILES.grep(/\.[ch]\z/)
  files.each_slice(50) do |some|
    _, errors, = Open3.capture3("clang-format", "--dry-run", "-Werror", *some)
    errors.scan(/^(.+?):(\d+):\d+: error:/).uniq(&:first).each do |file, line|
      find(file, line.to_i, "format", "clang-format would change it")
    end
  end
end

def package_flags
  packages = File.read("Makefile")[/^PACKAGES = (.*)$/, 1].split
  `pkg-config --cflags #{packages.join(' ')}`.split
end

def c_flags(file)
  flags = %w[-std=gnu11 -D_GNU_SOURCE -Isrc -Ibuild/gen] + package_flags
  return flags unless file.start_with?("ext/")

  config = RbConfig::CONFIG
  flags + ["-isystem", config["rubyhdrdir"], "-isystem", config["rubyarchhdrdir"], "-Ibuild/ext/#{config['ruby_version']}"]
end

# Runs the block for every file on all processors.
def in_parallel(files)
  queue = Queue.new
  files.each { |file| queue << file }
  queue.close
  Array.new(Etc.nprocessors) { Thread.new { while (file = queue.pop) do yield file end } }.each(&:join)
end

def run_tidy
  in_parallel(C_FILES.grep(%r{\A(src|ext)/.*\.c\z})) do |file|
    output, = Open3.capture2e("clang-tidy", "--quiet", "--checks=#{TIDY_CHECKS}", file, "--", *c_flags(file))
    output.scan(/^(\S+?):(\d+):\d+: (?:warning|error): (.*)$/).each do |path, line, words|
      find(path.delete_prefix("#{ROOT}/"), line.to_i, "clang-tidy", words)
    end
  end
  $findings.uniq!
end

def run_cppcheck
  output, = Open3.capture2e(
    "cppcheck", "--quiet", "--std=c11", "--language=c", "--enable=warning,performance,portability",
    "--inline-suppr", "--suppress=missingIncludeSystem", "--suppress=unknownMacro", "--suppress=syntaxError",
    "--template={file}:{line}: cppcheck: {message} ({id})", "-j", Etc.nprocessors.to_s,
    "-D__GNUC__=12", "-D__x86_64__=1", "-Isrc", "src", *Dir["ext"], "--error-exitcode=1"
  )
  $findings.concat(output.lines(chomp: true).grep(/: cppcheck: /).uniq)
end

C_FILES.each { |file| check_c(file) }
RUBY_FILES.each { |file| check_ruby(file) }
check_mirrors
check_directives
check_format
unless ARGV.include?("--quick")
  run_cppcheck
  run_tidy
end

if $findings.empty?
  puts "lint: clean"
else
  puts $findings.sort
  exit 1
end
