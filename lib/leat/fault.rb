# SPDX-License-Identifier: MIT
# frozen_string_literal: true

module Leat
  # What an exception means to the operator: where in the application it began, and what helps.
  module Fault
    # Exceptions by the name of their class or of an ancestor, and by their message, with the remedy. The
    # names are strings: none of these classes need be loaded.
    REMEDIES = [
      ["Bundler::RubyVersionMismatch", nil,
       ->(_) { "the Gemfile wants another Ruby than #{Fault.ruby}; name it with `ruby:` or LEAT_RUBY" }],
      ["Bundler::PermissionError", nil, ->(_) { "make the path of the message accessible to user #{Process.euid}" }],
      ["Bundler::BundlerError", nil, ->(_) { "run `bundle install` in #{Dir.pwd} with #{Fault.ruby}" }],
      [nil, /RAILS_MASTER_KEY|Missing encryption key|master\.key/,
       ->(_) { "set RAILS_MASTER_KEY, or put the key into config/master.key" }],
      ["ActiveSupport::MessageEncryptor::InvalidMessage", nil,
       ->(_) { "RAILS_MASTER_KEY (or config/master.key) does not fit the encrypted credentials" }],
      [nil, /secret_key_base/, ->(_) { "set SECRET_KEY_BASE, or RAILS_MASTER_KEY for the encrypted credentials" }],
      ["ActiveRecord::PendingMigrationError", nil, ->(_) { "run `bin/rails db:migrate RAILS_ENV=#{ENV["RAILS_ENV"]}`" }],
      ["ActiveRecord::StatementInvalid", /no such table|Could not find table|relation .* does not exist|Table .* doesn't exist/,
       ->(_) { "run `bin/rails db:migrate RAILS_ENV=#{ENV["RAILS_ENV"]}`" }],
      ["ActiveRecord::NoDatabaseError", nil, ->(_) { "run `bin/rails db:prepare RAILS_ENV=#{ENV["RAILS_ENV"]}`" }],
      ["Errno::EACCES", nil, ->(error) { Fault.writable(error) }],
      ["Errno::EROFS", nil, ->(error) { Fault.writable(error) }],
      ["Leat::Loader::NoApplication", nil, ->(_) { "is it the application's folder, and was all of it copied?" }],
      ["LoadError", /-- rack\b/, ->(_) { "install Rack: `gem install rack`, or add it to the Gemfile" }],
      ["LoadError", nil, ->(_) { "the library is not installed for #{Fault.ruby}, or is missing in the Gemfile" }]
    ].freeze

    module_function

    # The message `failed` for that exception.
    def describe(error)
      {
        "class" => error.class.name, "message" => words(error), "place" => place(error),
        "backtrace" => Array(error.backtrace).first(60).join("\n"), "hint" => hint(error) || hook(error)
      }.compact
    end

    # Where it happened, when the application itself was loaded already.
    def hook(error)
      event = Hooks.of(error) and "raised by the hook #{event} of #{Hooks::FILE}"
    end

    # Rails and others say on standard error what they did not like, and exit.
    def words(error)
      return error.message.to_s unless error.is_a?(SystemExit)

      why = error.cause&.message || error.message
      "the application left by exit(#{error.status}) while it was loaded#{": #{why}" unless why == "exit"}"
    end

    # The first line of the backtrace that is the application's own, else the first of all.
    def place(error)
      first_own(Array(error.backtrace))
    end

    def first_own(lines)
      own = lines.find { |line| own?(line) } || lines.find { |line| !line.start_with?(__dir__) }
      own && own.sub(/:in .*\z/, "")
    end

    def own?(line)
      line.start_with?("#{Dir.pwd}/") && !line.start_with?("#{Dir.pwd}/vendor/") && !line.include?("/gems/")
    rescue SystemCallError
      false
    end

    # The remedy for the exception, or for what caused it.
    def hint(error)
      10.times do
        return unless error

        remedy = remedy(error) and return remedy.call(error)
        error = error.cause
      end
    end

    def remedy(error)
      names = error.class.ancestors.map(&:name)
      row = REMEDIES.find do |name, pattern, _|
        (name.nil? || names.include?(name)) && (pattern.nil? || pattern.match?(error.message.to_s))
      end
      row&.last
    end

    def ruby
      "#{RbConfig.ruby} #{RUBY_VERSION}"
    end

    def writable(error)
      path = error.message[/(?: @ \w+ )?- (.*)\z/, 1]
      verb = path && File.file?(path) && !File.readable?(path) ? "read" : "write"
      "user #{[ENV["USER"], "(#{Process.euid})"].compact.join(" ")} may not #{verb} #{path || "there"}; " \
        "make it possible, or run as its owner"
    end
  end
end
