# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../rails_app"

# A Rails application, started by `leat` without a line in its Gemfile.
class RailsTest < ServerCase
  include RailsApp

  CONTROLLER = "app/controllers/pages_controller.rb"

  def test_production_serves_pages_files_and_no_words_of_exceptions
    write_rails
    server = start("-e", "production", "-w", "2")
    assert_match(/\Afirst production \d+\z/, get(server, "/").body)
    assert_equal "User-agent: *\n", get(server, "/robots.txt").body
    reply = get(server, "/boom")
    assert_equal "500", reply.code
    refute_match(/secret words/, reply.body)
    assert_equal "404", get(server, "/none").code
    assert_equal "200", http(server, "/", method: "HEAD").code
    out, code = leat("restart")
    assert_equal 0, code, out
    assert_match(/\Afirst production \d+\z/, get(server, "/").body)
    assert_equal 0, stop(server)
  end

  def test_development_reloads_code_and_shows_exceptions
    write_rails
    server = start
    pid = get(server, "/").body[/\d+\z/]
    write CONTROLLER, RailsApp::FILES[CONTROLLER].sub("first", "second")
    assert_equal "second development #{pid}", get(server, "/").body
    reply = get(server, "/boom", "Accept" => "text/html")
    assert_equal "500", reply.code
    assert_match(/ArgumentError\s+in PagesController#boom/, reply.body)
    assert_match(/secret words/, reply.body)
    write CONTROLLER, "class PagesController < ActionController::Base; def show"
    assert_match(/SyntaxError/, get(server, "/").body)
    write CONTROLLER, RailsApp::FILES[CONTROLLER].sub("first", "third")
    assert_equal "third development #{pid}", get(server, "/").body
  end

  def test_an_initializer_that_fails_in_development_is_shown_until_it_is_mended
    write_rails("config/initializers/gate.rb": "raise 'closed'\n")
    server = start
    assert_match(%r{closed.*config/initializers/gate\.rb:1}m, get(server, "/").body)
    write "config/initializers/gate.rb", ""
    assert_match(/\Afirst development/, get(server, "/").body)
  end

  def test_a_folder_with_environment_rb_only
    write_rails
    File.delete(File.join(@dir, "config.ru"))
    assert_match(/\Afirst production/, get(start("-e", "production", "-w", "1"), "/").body)
  end

  def refusal(*options, env: {})
    out, code = leat("start", "-d", "-e", "production", "-w", "1", "-p", free_port, *options, env: env)
    leat("stop", "--now", *options.each_cons(2).find { |name, _| name == "-P" }) if code.zero?
    assert_equal 1, code, out
    out
  end

  def test_a_missing_master_key_is_a_line_with_the_remedy
    write_rails("config/environments/production.rb": "Rails.application.configure { config.require_master_key = true }\n",
                "config/credentials.yml.enc": "x")
    assert_match(/^set RAILS_MASTER_KEY, or put the key into config\/master\.key$/, refusal)
  end

  def test_another_ruby_in_the_gemfile_is_a_line_with_the_remedy
    write_rails(lock: false, Gemfile: "ruby '9.9.9'\n#{RailsApp::FILES["Gemfile"]}")
    out = refusal
    assert_match(/RubyVersionMismatch: Your Ruby version is/, out)
    assert_match(/^the Gemfile wants another Ruby than .*; name it with `ruby:` or LEAT_RUBY$/, out)
  end

  def test_gems_that_are_not_installed_are_a_line_with_the_remedy
    write_rails(lock: false, Gemfile: "#{RailsApp::FILES["Gemfile"]}gem 'a-gem-that-nobody-has'\n")
    assert_match(/^run `bundle install` in #{@dir} with /, refusal)
  end

  def test_a_pending_migration_is_a_line_with_the_remedy
    write_rails("config/initializers/z.rb": "Rails.application.config.after_initialize { ActiveRecord::Migration.check_all_pending! }\n",
                "db/migrate/20260101000000_add_things.rb": "class AddThings < ActiveRecord::Migration[7.2]; def change = create_table(:things); end\n")
    assert_match(/^run `bin\/rails db:migrate RAILS_ENV=production`$/, refusal)
  end

  def test_a_missing_table_is_a_line_with_the_remedy
    write_rails("config/initializers/z.rb": <<~RUBY)
      Rails.application.config.after_initialize { ActiveRecord::Base.connection.select_all("select * from things") }
    RUBY
    assert_match(/^run `bin\/rails db:migrate RAILS_ENV=production`$/, refusal)
  end

  # Root may write everywhere, so that its workers become somebody else.
  def test_a_tmp_that_cannot_be_written_is_a_line_with_the_remedy
    write_rails("config/initializers/z.rb": "File.write(Rails.root.join('tmp/stamp'), '1')\n")
    Dir.glob("**/", base: @dir).each { |folder| File.chmod(folder == "tmp/" ? 0o555 : 0o755, File.join(@dir, folder)) }
    File.chmod(0o777, @dir, File.join(@dir, "log"))
    user = Process.uid.zero? ? ["-u", "nobody"] : []
    out = refusal("-P", "leat.pid", "-l", "/dev/null", *user)
    assert_match(%r{^user \w* ?\(\d+\) may not write #{@dir}/tmp/stamp; make it possible, or run as its owner$}, out)
  end
end
