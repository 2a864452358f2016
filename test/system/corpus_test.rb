# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "corpus/make_fixtures"
require "corpus/runner"

# The raw HTTP cases against a whole server: as they stand, byte by byte, and cut in two. One server and a
# few clients at once do a way of sending for all cases, when the first test asks; each test is one case.
class CorpusTest < ServerCase
  CASES = Corpus.cases(without: ["front"])
  CLIENTS = 12
  # How long cuts are tried; a longer look is a matter of setting this.
  CUT_SECONDS = Float(ENV["CORPUS_SECONDS"] || 15)
  # Positions at the ends of a long case that byte-wise sending takes singly.
  SINGLE_BYTES = 300

  @verdicts = {}
  class << self
    attr_reader :verdicts
  end

  CASES.each do |item|
    define_method("test_case_#{item['id']}") { assert_right verdicts(:whole)[item["id"]] }
    define_method("test_byte_by_byte_#{item['id']}") { assert_right verdicts(:bytewise)[item["id"]] }
  end

  # How long a case may take to come in is a property of the server's limits, not of where it is cut.
  def test_no_cut_changes_an_outcome
    whole = verdicts(:whole)
    start_inspector
    limit = now + CUT_SECONDS
    tried = Thread::Queue.new
    wrong = in_lanes(cuts) do |runner, (item, position)|
      next if now > limit || !whole[item["id"]].right?

      tried << position
      verdict = runner.verdict(item, cut(runner.parts(item).first, position))
      "#{item['id']} cut at #{position}: #{verdict.reason}" unless verdict.right?
    end.compact
    assert_empty wrong, "of #{tried.size} cuts"
  end

  def test_nothing_is_unsafe_smuggled_or_out_of_step
    unsafe = %i[whole bytewise].flat_map { |way| verdicts(way).select { |_, verdict| verdict.unsafe? }.keys }
    assert_empty unsafe
  end

  private

  def assert_right(verdict)
    assert verdict.right?, "#{verdict.reason}#{' UNSAFE' if verdict.unsafe?}"
  end

  def start_inspector
    FileUtils.cp(File.join(ROOT, "test/corpus/inspector.ru"), File.join(@dir, "config.ru"))
    Corpus::Fixtures.make(@dir) unless File.exist?(File.join(@dir, "public"))
    config "loops: 2\n"
    @server = start("-e", "production", "-w", "2", "-t", "3")
  end

  def verdicts(way)
    CorpusTest.verdicts[way] ||= begin
      start_inspector
      in_lanes(CASES) { |runner, item| [item["id"], send(way, runner, item)] }.to_h
    end
  end

  def whole(runner, item) = runner.verdict(item)

  def bytewise(runner, item)
    parts = runner.parts(item).flat_map { |part| part.is_a?(String) ? bytes_of(part) : [part] }
    runner.verdict(item, parts)
  end

  def bytes_of(part)
    return part.chars if part.bytesize <= 2 * SINGLE_BYTES

    middle = part.byteslice(SINGLE_BYTES...-SINGLE_BYTES)
    pieces = middle.scan(/.{1,#{1 + middle.bytesize / 100}}/mn)
    part.byteslice(0, SINGLE_BYTES).chars + pieces + part.byteslice(-SINGLE_BYTES..).chars
  end

  # Every [case, position] of the cases that are one part, in an order that is new in each run.
  def cuts
    plain = CASES.select { |item| item["send"].is_a?(String) }
    points = plain.flat_map { |item| (1...[item["send"].bytesize, 400].min).map { |position| [item, position] } }
    points.shuffle(random: Random.new(Minitest.seed.to_i))
  end

  # What comes back in between is read for a moment, so that the server sees the first part alone.
  def cut(bytes, position) = [bytes.byteslice(0, position), { "pause" => 3 }, bytes.byteslice(position..) || ""]

  # The block's results for all items, each client taking the next item when it is done with one.
  def in_lanes(items)
    queue, results = Thread::Queue.new, Thread::Queue.new
    items.each { |item| queue << item }
    queue.close
    lanes = Array.new(CLIENTS) do |number|
      Thread.new do
        runner = Corpus::Runner.new(@server.port, number)
        while (item = queue.pop)
          results << yield(runner, item)
        end
      end
    end
    lanes.each(&:join)
    Array.new(results.size) { results.pop }
  end
end
