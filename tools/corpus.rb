#!/usr/bin/env ruby
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Makes the fuzzers' first inputs of the raw cases in test/corpus/http1*.yml: what each case sends, and for
# the fuzzers of parts the targets, field values and chunked bodies in it. Plain Ruby, no gems.
#
# usage: tools/corpus.rb FOLDER

require "digest"
require "fileutils"
require "yaml"

CASES = Dir[File.expand_path("../test/corpus/http1*.yml", __dir__)].sort
# What repeats is repeated up to so many bytes: beyond the fuzzers' small limits, and still quick.
REPEAT_BYTES = 4200
# Stands for validators, which only a running server knows.
DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
ETAG = '"1-2-3"'
DATES = %w[if-modified-since if-unmodified-since if-range date].freeze
STATIC = %w[range if-range if-match if-none-match if-modified-since if-unmodified-since].freeze

class Corpus
  def initialize(folder)
    @folder = folder
    items = CASES.flat_map { |file| YAML.safe_load(File.read(file, encoding: "UTF-8")) }
    @cases = items.to_h { |item| [item["id"], sent(item)] }
  end

  def write
    FileUtils.rm_rf(@folder)
    @cases.each do |id, bytes|
      put("h1", id, bytes)
      put("conn", id, bytes)
      put_parts(bytes)
    end
    # Two cases on one connection.
    @cases.each_cons(2) { |(id, first), (_, second)| put("conn", "#{id}-and-next", first + second) }
  end

  private

  # All bytes of a case, without its pauses.
  def sent(item)
    Array(item["send"]).grep(String).map { |part| expand(part) }.join
  end

  def expand(text)
    text.b.gsub(/\{\{rep:(.*?):(\d+)\}\}/mn) { $1 * [$2.to_i, REPEAT_BYTES / $1.bytesize].min }
        .gsub(/\{\{hex:(\h+)\}\}/n) { [$1].pack("H*") }
        .gsub(/\{\{lm:[^}]+\}\}/n, DATE)
        .gsub(/\{\{etag(?:strong)?:[^}]+\}\}/n, ETAG)
  end

  def put(fuzzer, name, bytes)
    path = File.join(@folder, fuzzer, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.binwrite(path, bytes)
  end

  # Parts are many and alike: each stands there once, named by what is in it.
  def put_part(fuzzer, bytes) = put(fuzzer, Digest::SHA256.hexdigest(bytes)[0, 12], bytes)

  def put_parts(bytes)
    head, body = bytes.split("\r\n\r\n".b, 2)
    line, *fields = head.to_s.split("\r\n".b)
    fields = fields.map { |field| field.split(/: */n, 2) }.select { |pair| pair.size == 2 }
    put_target(line.to_s.split(" ")[1].to_s, fields)
    put_part("chunk", body) if body && head.match?(/transfer-encoding/i)
    fields.each do |name, value|
      put_part("static", "\x40\x05".b + value) if STATIC.include?(name.downcase)
      put_part("date", value) if DATES.include?(name.downcase)
    end
  end

  # As target_fuzz and forwarded_fuzz read them, line by line.
  def put_target(target, fields)
    given = fields.to_h { |name, value| [name.downcase, value.delete("\n")] }
    put_part("target", [target, given["host"]].join("\n"))
    proxy = %w[x-forwarded-for forwarded x-real-ip x-forwarded-host x-forwarded-proto x-forwarded-port].map { |name| given[name] }
    put_part("forwarded", proxy.join("\n")) if proxy.any?
  end
end

abort "usage: tools/corpus.rb FOLDER" unless ARGV.size == 1
Corpus.new(ARGV.first).write
