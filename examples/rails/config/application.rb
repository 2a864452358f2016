# frozen_string_literal: true

require_relative "boot"

require "logger"
require "rails"
require "active_model/railtie"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

module WaterBook
  # The levels of a few gauges along a leat, and a form to write down another one.
  class Application < Rails::Application
    config.load_defaults 7.2
    config.root = File.expand_path("..", __dir__)

    # An example has to start without being set up: the secret comes from the environment, or is made
    # once and kept.
    config.secret_key_base = ENV["SECRET_KEY_BASE"].presence || begin
      file = config.root.join("tmp/secret_key_base")
      file.dirname.mkpath
      file.open(File::WRONLY | File::CREAT | File::EXCL, 0o600) { |out| out.write(SecureRandom.hex(64)) } unless file.exist?
      file.read
    rescue Errno::EEXIST
      retry
    end

    config.after_initialize do
      require config.root.join("db/make")
      MakeDatabase.call
    end
  end
end
