# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# A strict reader of OpenMetrics text: families with their samples, or an error that names the first line
# that breaks a rule of the format.
class OpenMetrics
  Family = Struct.new(:name, :type, :help, :unit, :samples)
  Sample = Struct.new(:name, :labels, :value)
  Broken = Class.new(StandardError)

  NAME = /[a-z_][a-z0-9_]*/
  LABEL = /(#{NAME})="((?:[^"\\\n]|\\["\\n])*)"/
  SAMPLE = /\A(#{NAME})(?:\{(#{LABEL}(?:,#{LABEL})*)\})? (\S+)\z/
  NUMBER = /\A-?\d+(?:\.\d+)?\z/
  # How the samples of a type end.
  ENDINGS = { "counter" => ["_total"], "gauge" => [""], "histogram" => %w[_bucket _sum _count] }.freeze

  attr_reader :families

  def initialize(text)
    @families = {}
    raise Broken, "the end is missing" unless text.end_with?("\n# EOF\n")

    text.delete_suffix("# EOF\n").each_line(chomp: true) { |line| read(line) }
    @families.each_value { |family| check(family) }
  end

  # The value of the one sample with that name and all those labels.
  def value(name, labels = {})
    labels = labels.transform_keys(&:to_s)
    found = @families.values.flat_map(&:samples).select { |sample| sample.name == name && sample.labels >= labels }
    raise Broken, "#{found.size} samples of #{name} #{labels}" unless found.size == 1

    found.first.value
  end

  private

  def read(line)
    case line
    when /\A# (TYPE|HELP|UNIT) (#{NAME}) (\S.*)\z/ then describe($1.downcase, $2, $3, line)
    when SAMPLE then add(line, $1, $2.to_s, line[/ (\S+)\z/, 1])
    else raise Broken, "no line of the format: #{line.inspect}"
    end
  end

  # What is said of a family stands before its samples, once; families do not mix.
  def describe(kind, name, words, line)
    @last = @families[name] ||= Family.new(name, nil, nil, nil, []) unless @last&.name == name
    fresh = @families.keys.last == name && @last.samples.empty? && @last[kind].nil?
    raise Broken, "out of place: #{line}" unless fresh

    @last[kind] = words
  end

  def add(line, name, labels, number)
    ending = name.delete_prefix(@last&.name.to_s)
    raise Broken, "not of its family: #{line}" unless @last && ENDINGS.fetch(@last.type).include?(ending) && name.start_with?(@last.name)
    raise Broken, "no number: #{line}" unless number.match?(NUMBER)

    pairs = labels.scan(LABEL)
    sample = Sample.new(name, pairs.to_h, number.include?(".") ? number.to_f : number.to_i)
    again = @last.samples.any? { |other| other.name == name && other.labels == sample.labels }
    raise Broken, "said twice: #{line}" if again || pairs.size != sample.labels.size

    @last.samples << sample
  end

  def check(family)
    raise Broken, "#{family.name}: no type or help" unless family.type && family.help
    raise Broken, "#{family.name}: the unit is no part of the name" if family.unit && !family.name.end_with?("_#{family.unit}")

    ending = family.name[/_(seconds|bytes)\z/, 1]
    raise Broken, "#{family.name}: no unit" if ending && family.unit != ending

    family.samples.each { |sample| raise Broken, "#{family.name}: below zero" if sample.value.negative? }
    check_histogram(family) if family.type == "histogram"
  end

  # Buckets of one set of labels stand together, rise, and end in what is counted.
  def check_histogram(family)
    groups = family.samples.chunk_while { |a, b| a.labels.except("le") == b.labels.except("le") }
    raise Broken, "#{family.name}: mixed" unless groups.map { |group| group.first.labels.except("le") }.uniq.size == groups.count

    groups.each do |group|
      buckets = group.select { |sample| sample.name.end_with?("_bucket") }
      bounds = buckets.map { |sample| bound(sample.labels["le"]) }
      values = buckets.map(&:value)
      count = group.find { |sample| sample.name.end_with?("_count") }&.value
      right = bounds == bounds.uniq.sort && bounds.last == Float::INFINITY && values == values.sort && values.last == count
      raise Broken, "#{family.name} #{group.first.labels}: no histogram" unless right && group.size == buckets.size + 2
    end
  end

  # Written in the one form that all writers share.
  def bound(text)
    return Float::INFINITY if text == "+Inf"
    raise Broken, "le=#{text}" unless text == text.to_f.to_s

    text.to_f
  end
end
