# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "server_case"

# A small Rails application for tests, written into the test's folder. A test adds to it or overwrites
# parts of it with write.
module RailsApp
  FILES = {
    "Gemfile" => <<~RUBY,
      source "https://rubygems.org"
      gem "rails", "~> 7.2.0"
      gem "sqlite3", "~> 1.7"
    RUBY
    "config.ru" => "require_relative 'config/environment'\nrun Rails.application\n",
    "bin/rails" => <<~RUBY,
      APP_PATH = File.expand_path("../config/application", __dir__)
      require_relative "../config/boot"
      require "rails/commands"
    RUBY
    "config/boot.rb" => <<~RUBY,
      ENV["BUNDLE_GEMFILE"] ||= File.expand_path("../Gemfile", __dir__)
      require "bundler/setup"
    RUBY
    "config/environment.rb" => "require_relative 'application'\nRails.application.initialize!\n",
    "config/application.rb" => <<~RUBY,
      require_relative "boot"
      require "logger"
      require "rails"
      require "action_controller/railtie"
      require "active_record/railtie"
      Bundler.require(*Rails.groups)

      module Small
        class Application < Rails::Application
          config.load_defaults 7.2
          config.root = File.expand_path("..", __dir__)
          config.secret_key_base = "no secret at all" * 4
          config.eager_load = !Rails.env.development?
          config.enable_reloading = Rails.env.development?
          config.consider_all_requests_local = Rails.env.development?
        end
      end
    RUBY
    "config/database.yml" => %(<%= Rails.env %>: {adapter: sqlite3, database: "db/<%= Rails.env %>.sqlite3"}\n),
    "config/routes.rb" => <<~RUBY,
      Rails.application.routes.draw do
        root "pages#show"
        get "/boom" => "pages#boom"
      end
    RUBY
    "app/controllers/pages_controller.rb" => <<~RUBY,
      class PagesController < ActionController::Base
        def show = render(plain: "first \#{Rails.env} \#{Process.pid}")

        def boom = raise(ArgumentError, "secret words")
      end
    RUBY
    "db/.keep" => "", "log/.keep" => "", "tmp/.keep" => "", "public/robots.txt" => "User-agent: *\n"
  }.freeze

  # Bundler takes seconds to resolve a Gemfile: once for all tests with the same one.
  def self.lock(gemfile)
    (@locks ||= {})[gemfile] ||= Dir.mktmpdir do |dir|
      File.write(File.join(dir, "Gemfile"), gemfile)
      out, status = Open3.capture2e({ "BUNDLE_GEMFILE" => nil, "RUBYOPT" => nil }, "bundle", "lock", "--local", chdir: dir)
      raise out unless status.success?

      File.read(File.join(dir, "Gemfile.lock"))
    end
  end

  # changes: path => text. lock: false for a Gemfile that cannot be resolved here.
  def write_rails(lock: true, **changes)
    files = FILES.merge(changes.transform_keys(&:to_s))
    files["Gemfile.lock"] = RailsApp.lock(files["Gemfile"]) if lock
    files.each { |path, text| write(path, text) }
  end

  # The same with Leat in the bundle, as `rails server` wants it.
  def write_rails_with_leat
    write_rails(Gemfile: "#{FILES["Gemfile"]}gem \"leat\", path: #{ServerCase::ROOT.inspect}\n")
  end
end
