# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Corpus
  # What was observed of one run of a case: final responses, interim statuses, whether the connection is
  # over, bytes that are no response, why it is out of step (or nil), what the application saw, all bytes.
  Facts = Struct.new(:finals, :interims, :closed, :garbage, :desync, :seen, :raw, keyword_init: true) do
    # The first final status, or the word for what came in its place.
    def first_status
      return finals.first.status if finals.any?
      return garbage.getbyte(3) == 4 ? "h2" : "garbage" if garbage

      closed ? "close" : "wait"
    end

    def to_s
      statuses = finals.any? ? finals.map(&:status).join(",") : first_status
      paths = seen.map { |request| "#{request['method']} #{request['path'][0, 60]} #{request['body_len']}" }
      "got #{statuses}, #{closed ? 'closed' : 'open'}; the application saw #{paths.inspect}"
    end
  end

  # Compares the facts of a run with what the case allows. Pure.
  class Verdict
    attr_reader :reason

    def initialize(item, facts)
      @item, @facts = item, facts
      @reason = find_reason
    end

    def right? = @reason.nil?

    # Out of step, smuggled, injected, leaked, or taken by the application although every rule refuses it.
    def unsafe?
      return false if right?
      return true if @facts.desync || @facts.garbage || smuggled || leaked?

      alternatives.all? { |wanted| wanted["app_count"] == 0 } && @facts.seen.any?
    end

    private

    def alternatives = @item["expect"]

    def find_reason
      return "out of step: #{@facts.desync} (#{@facts})" if @facts.desync
      return "the application saw #{smuggled['method']} #{smuggled['path']} (#{@facts})" if smuggled

      reasons = alternatives.map { |wanted| mismatch(wanted) }
      "#{reasons.uniq.join(' | ')} (#{@facts})" unless reasons.any?(&:nil?)
    end

    def smuggled
      never = Array(@item["app_never"]).map { |pattern| Regexp.new(pattern) }
      @facts.seen.find { |request| never.any? { |pattern| request["path"].match?(pattern) } }
    end

    def leaked?
      body = @facts.finals.map(&:body).join
      alternatives.any? do |wanted|
        injected = wanted.fetch("headers", {}).fetch("x-injected", "").nil? && first&.headers&.key?("x-injected")
        injected || (wanted["body_not"] && binary(wanted["body_not"]).match?(body))
      end
    end

    def first = @facts.finals.first

    def binary(pattern, options = 0) = Regexp.new(pattern.b, Regexp::NOENCODING | options)

    # The first thing in which the facts differ from one alternative, or nil.
    def mismatch(wanted)
      return "garbage #{@facts.garbage.inspect}" if @facts.garbage && !Array(wanted["status"]).include?("h2")

      status(wanted) || count(wanted) || interim(wanted) || connection(wanted) || wholeness(wanted) ||
        fields(wanted) || body(wanted) || head(wanted) || application(wanted)
    end

    def status(wanted)
      status = @facts.first_status
      "status #{status} not in #{wanted['status'].inspect}" if wanted["status"] && !wanted["status"].include?(status)
    end

    def count(wanted)
      finals, expected = @facts.finals, wanted["responses"]
      size = expected.is_a?(Array) ? expected.size : expected
      return "#{finals.size} responses, not #{size || 1}" if size ? finals.size != size : finals.size > 1
      return unless expected.is_a?(Array)

      wrong = finals.zip(expected).find { |response, allowed| !allowed.include?(response.status) }
      "response #{wrong[0].status}, not #{wrong[1].inspect}" if wrong
    end

    def interim(wanted)
      expected = wanted["interim"] or return
      wrong = expected.empty? ? @facts.interims.any? : (expected - @facts.interims).any?
      "interim #{@facts.interims.inspect}, not #{expected.inspect}" if wrong
    end

    def connection(wanted)
      return "still open" if wanted["connection"] == "close" && !@facts.closed

      "closed" if wanted["connection"] == "keep-alive" && @facts.closed
    end

    def wholeness(wanted)
      cut = @facts.finals.any? { |response| !response.complete }
      return "the cut body looks whole" if wanted["truncated"] && !cut

      "a response is cut short" if cut && !wanted["truncated"]
    end

    def fields(wanted)
      return "different Content-Lengths" if wanted["single_cl"] && first&.two_lengths?

      wanted.fetch("headers", {}).each do |name, pattern|
        value = first&.headers&.[](name)
        return "field #{name}: #{value}" if pattern.nil? && value
        next if pattern.nil? || (value.nil? && wanted["cl_optional"])
        return "field #{name}: #{value.inspect}" unless value&.match?(Regexp.new(pattern))
      end
      nil
    end

    def body(wanted)
      body, all = first&.body || "".b, @facts.finals.map(&:body).join
      return "body of #{body.bytesize}, not #{wanted['body_len']}" if wanted["body_len"] && body.bytesize != wanted["body_len"]
      return "body of #{body.bytesize}" if wanted["body_max"] && body.bytesize > wanted["body_max"]
      return "the body does not match" if wanted["body_re"] && !binary(wanted["body_re"]).match?(body)
      return "the body shows #{wanted['body_not']}" if wanted["body_not"] && binary(wanted["body_not"]).match?(all)

      wrong = Array(wanted["bodies"]).each_with_index.find do |pattern, index|
        !binary(pattern, Regexp::MULTILINE).match?(@facts.finals[index]&.body.to_s)
      end
      "body #{wrong.last + 1} does not match" if wrong
    end

    def head(wanted)
      heads = @facts.finals.map(&:head).join
      return "the head does not match" if wanted["raw_re"] && !binary(wanted["raw_re"]).match?(heads)

      "the head shows #{wanted['raw_not'].inspect}" if wanted["raw_not"] && binary(wanted["raw_not"]).match?(@facts.raw)
    end

    def application(wanted)
      seen = @facts.seen
      if wanted["app_count"] && !Array(wanted["app_count"]).include?(seen.size)
        return "the application saw #{seen.size} requests, not #{wanted['app_count']}"
      end

      Array(wanted["app_sees"]).each_with_index do |expected, index|
        return "the application saw no request #{index + 1}" unless seen[index]

        wrong = flat(expected).find { |path, value| !match?(value, seen[index].dig(*path)) }
        return "the application saw #{wrong[0].join(' ')}=#{seen[index].dig(*wrong[0]).to_s[0, 80].inspect}" if wrong
      end
      nil
    end

    # {"path" => .., "headers" => {"host" => ..}} as [[path, value], ..].
    def flat(expected)
      plain = expected.except("headers").map { |name, value| [[name], value] }
      plain + expected.fetch("headers", {}).map { |name, value| [["headers", name], value] }
    end

    # A text that starts like a pattern is one.
    def match?(expected, value)
      return value.nil? || value == "" if expected.nil?
      return value.to_s == expected.to_s unless expected.is_a?(String) && expected.match?(/\A\^|\\|\$\z|\A\(/)

      binary(expected).match?(value.to_s.b)
    end
  end
end
