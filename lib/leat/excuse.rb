# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # In development: a worker whose application cannot be loaded answers every request with the exception.
  # Before each one it looks at the files; when one has changed it leaves the request to its successor,
  # which loads them anew.
  class Excuse
    def self.serve(hello, fds)
      sources = Sources.new(hello["app"])
      index = hello["index"].to_i
      begin
        loader = Loader.new(hello).load
      rescue StandardError, ScriptError, SystemExit, SystemStackError, NoMemoryError => error
        values = { "generation" => hello["generation"], "index" => index, **Fault.describe(error) }
        Control.send(fds[:report], "excuse", values)
        sources.add_loaded
        throw(:served, ExcusedWorker.new(hello, fds, index, new(error, sources)).run)
      end
      Boot.serve(hello, fds, index, loader)
    end

    attr_reader :app, :hooks, :sources

    # Stands in the place of a Loader.
    def initialize(error, sources)
      @sources = sources
      @hooks = Hooks.new
      @text = text(error)
      @page = page(error)
      @app = method(:call)
    end

    def old_rack?
      true
    end

    def rack2?
      false
    end

    def call(env)
      html = env["HTTP_ACCEPT"].to_s.include?("text/html")
      headers = { "content-type" => "text/#{html ? "html" : "plain"}; charset=utf-8", "cache-control" => "no-store" }
      [500, headers, [html ? @page : @text]]
    end

    private

    def text(error)
      parts = [heading(error), Fault.hint(error), Array(error.backtrace).join("\n")]
      clean("#{parts.compact.reject(&:empty?).join("\n\n")}\n")
    end

    def heading(error)
      "#{error.class}: #{Fault.words(error)}"
    end

    def page(error)
      lines = Array(error.backtrace).map do |line|
        Fault.own?(line) ? "<b>#{escape(line)}</b>" : escape(line)
      end
      hint = Fault.hint(error)
      clean(<<~HTML)
        <!DOCTYPE html>
        <html lang="en"><meta charset="utf-8"><title>#{escape(error.class.name)}</title>
        <style>
        body { font: 16px/1.5 sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222; background: #fff }
        pre { overflow-x: auto; font-size: 13px; line-height: 1.6; color: #777 } pre b { color: #222 }
        h1 { font-size: 1.4rem } h1 + pre { font-size: 16px; color: #a00; white-space: pre-wrap }
        </style>
        <h1>The application cannot be loaded: #{escape(error.class.name)}</h1>
        <pre>#{escape(Fault.words(error))}</pre>
        #{"<p>#{escape(hint)}</p>" if hint}
        <p>It is tried again at the first request after a change of its files.</p>
        <pre>#{lines.join("\n")}</pre>
        </html>
      HTML
    end

    def escape(text)
      clean(text.to_s).gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
    end

    def clean(text)
      text.dup.force_encoding(Encoding::UTF_8).scrub("?")
    end
  end

  # The files that a loading of the application depends on, as they were when this was made.
  class Sources
    # What an application writes itself, or is not its code.
    APART = %w[log node_modules public storage tmp vendor].freeze
    NAMES = "{*.{rb,ru,rake,gemspec,lock,yml,yaml,json,toml,key,enc,erb,haml,slim},Gemfile,Rakefile,.env*,.ruby-version,.tool-versions}"

    def initialize(folder)
      @folder = folder
      @more = []
      @seen = look
    end

    # What has been required from elsewhere counts, too, and gems that are installed.
    def add_loaded
      gems = defined?(::Gem) ? ::Gem.path.map { |path| File.join(path, "specifications") } : []
      @more = $LOADED_FEATURES.select { |path| path.start_with?("/") && path.end_with?(".rb") } + gems
      @more.each { |path| @seen[path] = mark(path) }
    end

    def changed?
      look != @seen
    end

    private

    def look
      [*files, *@more].to_h { |path| [path, mark(path)] }
    end

    def files
      top = Dir.children(@folder).reject { |name| APART.include?(name) || name == ".git" }
      folders = top.select { |name| File.directory?(File.join(@folder, name)) }
      Dir.glob(NAMES, base: @folder).concat(folders.flat_map { |name| Dir.glob("#{name}/**/#{NAMES}", base: @folder) })
         .map { |name| File.join(@folder, name) }
    end

    def mark(path)
      stat = File.stat(path)
      [stat.mtime, stat.size, stat.ino]
    rescue SystemCallError
      nil
    end
  end

  # Serves with one thread: nobody takes a request that has not looked at the files first.
  class ExcusedWorker < Worker
    private

    def threads
      1
    end

    def next_env(seat)
      @board.retire if seat.wait && @loader.sources.changed?
      super
    end
  end
end
