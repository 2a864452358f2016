# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../redmine_case"

# The installed Redmine as it is: nothing is written to its folder.
class RedmineTest < RedmineCase
  # The user that may read its configuration.
  USER = "www-data"

  def setup
    super
    File.chmod(0o777, @dir)
    @before = snapshot(FOLDER)
  end

  def teardown
    assert_equal @before, snapshot(FOLDER)
  ensure
    super
  end

  # Starts it as that user, who may write nothing there.
  def start_as(user)
    port = free_port
    out = File.join(@dir, "output")
    command = [binary, "start", "-e", "production", "-p", port.to_s, "-P", File.join(@dir, "redmine.pid"), "-w", "2"]
    command = ["setpriv", "--reuid", user, "--regid", user, "--init-groups", *command] if user
    pid = Process.spawn(clean_env.merge("XDG_RUNTIME_DIR" => nil, "TMPDIR" => @dir), *command, chdir: FOLDER, out: out, err: [:child, :out], in: "/dev/null")
    server = Server.new(pid, FOLDER, port, out)
    @servers << server
    wait_ready(server)
    server
  end

  def check_pages(server)
    assert_match(%r{<title>Redmine</title>}, get(server, "/").body)
    login = get(server, "/login").body.force_encoding("UTF-8")
    assert_match(/name="authenticity_token" value="[^"]+"/, login)
    assets = login.scan(/(?:href|src)="(\/(?:stylesheets|javascripts|images|favicon)[^"]*)"/).flatten
    assert_operator assets.size, :>=, 5
    assets.each do |path|
      reply = get(server, path)
      assert_equal "200", reply.code, path
      refute_empty reply.body, path
    end
    # Links of the package lead to /usr/share/javascript.
    jquery = File.join(FOLDER, "public/javascripts/jquery.min.js")
    assert_equal File.binread(jquery), get(server, "/javascripts/jquery.min.js").body.b if File.exist?(jquery)
    assert_equal "404", get(server, "/no/such/page").code
    assert_equal "404", get(server, "/config/database.yml").code
  end

  def test_it_serves_pages_assets_and_the_login_form
    server = start_as(nil)
    check_pages(server)
    assert_equal 0, stop(server)
  end

  if Process.uid.zero?
    def test_and_so_it_does_for_a_user_who_may_write_nothing_there
      server = start_as(USER)
      check_pages(server)
      assert_equal [Process::UID.from_name(USER)], children_of(server.pid).map { |pid, _| File.stat("/proc/#{pid}").uid }.uniq
      assert_equal 0, stop(server)
    end
  end
end if RedmineCase.there?
