# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "yaml"
require "corpus/connection"
require "corpus/inspector"
require "corpus/verdict"

# Raw HTTP/1.1 cases against a server that hosts inspector.ru; http1.yml opens with the form of a case.
module Corpus
  FILES = %w[http1.yml http1-more.yml].map { |name| File.expand_path(name, __dir__) }

  # The cases, without those that need what the server under test is not.
  def self.cases(without: [])
    all = FILES.flat_map { |file| YAML.safe_load(File.read(file, encoding: "UTF-8")) }
    all.reject { |item| (Array(item["needs"]) & without).any? }
  end

  NoVerdict = Struct.new(:reason) do
    def right? = false
    def unsafe? = false
  end

  # Runs cases from one client address, one after the other; several runners, each with an address of its
  # own, may run at once.
  class Runner
    PROBE = "GET /app/probe-after HTTP/1.1\r\nHost: localhost\r\n\r\n"
    PROBE_PATH = "/app/probe-after"
    # How long an answer that has to come may take, a close that has to come, something that must not come.
    ANSWER_SECONDS = 5.0
    CLOSE_SECONDS = 1.5
    QUIET_SECONDS = 0.05

    def initialize(port, number)
      @port = port
      @source = "127.0.#{1 + number / 250}.#{1 + number % 250}"
      @inspector = Inspector.new(port, @source)
      @validators = {}
    end

    # The parts of a case as they go out: bytes, or one of the pauses.
    def parts(item)
      list = item["send"].is_a?(Array) ? item["send"] : [item["send"]]
      list.map { |part| part.is_a?(String) ? expand(part) : part }
    end

    # Sends the parts and tells what came of it.
    def run(item, parts = parts(item))
      @inspector.reset
      connection = Connection.new(@port, source: @source, methods: item["methods"])
      parts.each { |part| send_part(connection, part) }
      await(connection, item)
      facts = observe(connection, item)
      facts.seen = @inspector.seen.reject { |request| request["path"] == PROBE_PATH }
      facts
    ensure
      connection&.shut
    end

    # The verdict on a run; a server that is not there is a wrong one.
    def verdict(item, parts = parts(item))
      Verdict.new(item, run(item, parts))
    rescue SystemCallError, IOError, RuntimeError => error
      NoVerdict.new("#{error.class}: #{error.message}")
    end

    private

    # {{rep:TEXT:N}} repeats, {{hex:..}} raw bytes, {{lm:/f}} {{etag:/f}} {{etagstrong:/f}} validators of /f.
    def expand(text)
      text.b.gsub(/\{\{rep:(.*?):(\d+)\}\}/mn) { $1 * $2.to_i }
          .gsub(/\{\{hex:(\h+)\}\}/n) { [$1].pack("H*") }
          .gsub(/\{\{(lm|etag|etagstrong):([^}]+)\}\}/n) { validator($1, $2) }
    end

    def validator(kind, path)
      value = @validators[[kind, path]] ||= @inspector.field(path, kind == "lm" ? "last-modified" : "etag")
      kind == "etagstrong" ? value.delete_prefix("W/") : value
    end

    def send_part(connection, part)
      return connection.send_bytes(part) if part.is_a?(String)

      connection.listen(part["pause"] / 1000.0) if part["pause"]
      connection.half_close if part["half_close"]
      connection.await_interim(part["await"], ANSWER_SECONDS) if part["await"]
    end

    def await(connection, item)
      counts = item["expect"].map { |wanted| wanted["responses"] }
      most = counts.map { |count| count.is_a?(Array) ? count.size : count || 1 }.max
      connection.await_finals(most, waits_in_vain?(item) ? 1.0 : ANSWER_SECONDS)
      closes = item["expect"].any? { |wanted| wanted["connection"] == "close" || wanted["truncated"] }
      connection.listen(closes ? CLOSE_SECONDS : QUIET_SECONDS)
      connection.finish
    end

    # No answer is one of the right outcomes.
    def waits_in_vain?(item) = item["expect"].any? { |wanted| Array(wanted["status"]).include?("wait") }

    def observe(connection, item)
      facts = Facts.new(finals: connection.finals.dup, interims: connection.interims, closed: connection.closed?,
                        garbage: connection.garbage, raw: connection.raw.dup)
      probe(connection, facts) unless facts.closed || facts.finals.empty? || item["probe"] == false || facts.garbage
      facts
    end

    # One more request on an open connection: its answer, or a close, and nothing else; else it is out of step.
    def probe(connection, facts)
      before = connection.finals.size
      connection.send_bytes(PROBE)
      connection.await_finals(before + 1, ANSWER_SECONDS)
      connection.listen(0.02)
      connection.finish
      answers = connection.finals.drop(before)
      facts.desync = out_of_step(connection, answers)
      facts.closed = connection.closed? && answers.empty?
    end

    def out_of_step(connection, answers)
      return "after the probe: #{connection.garbage.inspect}" if connection.garbage
      return "#{answers.size} answers to one probe" if answers.size > 1
      return connection.closed? ? nil : "neither an answer to the probe nor a close" if answers.empty?

      answer = answers.first
      right = answer.status == 200 && answer.body.include?(PROBE_PATH)
      refused = answer.status != 200 && answer.headers["connection"].to_s.match?(/close/i)
      "the probe is answered with #{answer.status}" unless right || refused
    end
  end
end
