# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../redmine_case"

# Redmine in use, in a copy with a database of its own.
class RedmineUseTest < RedmineCase
  def sign_in(server)
    browser = Browser.new(server.port)
    browser.get("/login")
    page = browser.post("/login", "username" => "admin", "password" => "admin")
    assert_match(/new_password/, page.body, "the first sign-in asks for a new password")
    browser.post("/my/password", "password" => "admin", "new_password" => PASSWORD, "new_password_confirmation" => PASSWORD)
    assert_match(%r{href="/logout"}, browser.get("/my/page").body)
    browser
  end

  def make_project(browser)
    browser.get("/projects/new")
    page = browser.post("/projects", "project[name]" => "Leat", "project[identifier]" => "leat", "project[enabled_module_names][]" => "files")
    assert_match(/Successful creation/, page.body)
  end

  # Adds the file by the form, and returns the path of its download.
  def upload(browser, name, bytes)
    browser.get("/projects/leat/files/new")
    page = browser.post_files("/projects/leat/files", {}, "attachments[1][file]" => [name, bytes])
    page.body[%r{/attachments/download/\d+/#{name}}] || flunk("no #{name} on the page: #{page.code}")
  end

  def test_sign_in_a_project_and_files_of_20_mb
    copy = copy_redmine
    server = start_copy(copy)
    browser = sign_in(server)
    make_project(browser)
    bytes = Random.new(20).bytes(20 * 1024 * 1024)
    path = upload(browser, "twenty.bin", bytes)
    assert browser.get(path).body == bytes, "the form's file comes back byte for byte"
    # The page sends them so; Redmine keeps a content that it has once.
    bytes.reverse!
    browser.get("/projects/leat/files/new")
    reply = browser.post_bytes("/uploads.js?attachment_id=1&filename=raw.bin", bytes)
    assert_match(/attachments_1/, reply.body)
    stored = Dir.glob(File.join(copy, "instances/default/files/**/*raw.bin"))
    assert_equal [true], stored.map { |file| File.binread(file) == bytes }, "so does the plain body"
    assert_equal 0, stop(server)
  end
end if RedmineCase.there?
