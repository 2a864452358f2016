# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # Loads the application of a release: Bundler when there is a Gemfile, then config.ru through the Rack
  # that is there, else config/environment.rb.
  class Loader
    LIB = File.expand_path("..", __dir__)

    # A release without anything to load.
    class NoApplication < LoadError; end

    attr_reader :app, :hooks

    # An application that somebody else has loaded (rackup, rails server).
    def self.loaded(app, folder)
      new({ "app" => folder }).tap { |loader| loader.adopt(app) }
    end

    def initialize(hello)
      @folder = hello["app"]
      @rackup = hello["rackup"].to_s
    end

    def load
      Dir.chdir(@folder)
      set_up_bundler
      $LOAD_PATH << LIB unless $LOAD_PATH.include?(LIB)
      yield if block_given?
      @app = rackup? ? from_rackup : from_rails
      @hooks = Hooks.load(@folder)
      self
    end

    def adopt(app)
      @app = app
      @hooks = Hooks.load(@folder)
    end

    # The version of the Rack that the application brought along, or nil.
    def rack
      defined?(::Rack) && ::Rack.respond_to?(:release) ? ::Rack.release : nil
    end

    # Rack 3.0 and older know HTTP_VERSION; later it is an ordinary request field.
    def old_rack?
      major, minor = rack.to_s.split(".").map(&:to_i)
      rack.nil? || major < 3 || (major == 3 && minor.to_i.zero?)
    end

    def rack2?
      rack.to_s.to_i == 2
    end

    private

    def set_up_bundler
      gemfile = File.join(@folder, "Gemfile")
      return unless ENV["BUNDLE_GEMFILE"] || File.file?(gemfile)

      ENV["BUNDLE_GEMFILE"] ||= gemfile
      require "bundler"
      ::Bundler.setup
    end

    def rackup_path
      File.expand_path(@rackup.empty? ? "config.ru" : @rackup, @folder)
    end

    # The server names what it has found, which is config/environment.rb where there is no config.ru.
    def rackup?
      File.file?(rackup_path) && !rackup_path.end_with?("/config/environment.rb")
    end

    def from_rackup
      require "rack"
      require "rack/builder"
      require "uri" if rack2? # Rack::Lint of Rack 2 uses it and counts on the server to have loaded it
      built = ::Rack::Builder.parse_file(rackup_path)
      built.is_a?(Array) ? built.first : built # Rack 2 adds the options of the first line
    end

    def from_rails
      path = File.join(@folder, "config/environment.rb")
      raise NoApplication, nothing_found unless File.file?(path)

      require path
      raise "config/environment.rb defines no Rails.application" unless defined?(::Rails) && ::Rails.application

      ::Rails.application.load_server if ::Rails.application.respond_to?(:load_server)
      ::Rails.application
    end

    def nothing_found
      named = rackup_path
      names = [named, File.join(@folder, "config.ru")].uniq - [File.join(@folder, "config/environment.rb")]
      "there is neither #{names.join(" nor ")} nor config/environment.rb in #{@folder}"
        .gsub("#{@folder}/", "")
    end
  end
end
