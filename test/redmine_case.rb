# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "server_case"

# Debian's Redmine (Rails 6.1, Rack 2.2). Its tests exist where the packages redmine and redmine-sqlite
# are installed.
class RedmineCase < ServerCase
  FOLDER = "/usr/share/redmine"
  DATABASE = "/var/lib/dbconfig-common/sqlite3/redmine/instances/default/redmine_default"
  PASSWORD = "first password"

  def self.there?
    return @there unless @there.nil?

    @there = File.exist?("#{FOLDER}/config.ru") && File.exist?(DATABASE)
    warn "#{FOLDER} is not there, its tests do not run: apt-get install redmine redmine-sqlite" unless @there
    @there
  end

  # A browser: cookies, and the token of the last page for the next form.
  class Browser
    attr_reader :page

    def initialize(port)
      @port = port
      @cookies = {}
    end

    def get(path) = go(Net::HTTP::Get.new(path))

    def post(path, fields) = go(Net::HTTP::Post.new(path).tap { |request| request.set_form_data("authenticity_token" => token, **fields) })

    # fields: name => text; files: name => [file name, bytes]
    def post_files(path, fields, files)
      request = Net::HTTP::Post.new(path)
      parts = { "authenticity_token" => token, **fields }.map { |name, text| [name, text] }
      parts += files.map { |name, (file, bytes)| [name, StringIO.new(bytes), { filename: file, content_type: "application/octet-stream" }] }
      request.set_form(parts, "multipart/form-data")
      go(request)
    end

    def post_bytes(path, bytes)
      request = Net::HTTP::Post.new(path, "Content-Type" => "application/octet-stream", "X-CSRF-Token" => token,
                                          "X-Requested-With" => "XMLHttpRequest", "Accept" => "text/javascript")
      request.body = bytes
      go(request)
    end

    def token = @page.body.force_encoding("UTF-8")[/name="authenticity_token" value="([^"]+)"/, 1] || @page.body[/csrf-token" content="([^"]+)"/, 1]

    private

    def go(request)
      request["Cookie"] = @cookies.map { |pair| pair.join("=") }.join("; ")
      reply = Net::HTTP.start("127.0.0.1", @port, read_timeout: 60) { |client| client.request(request) }
      Array(reply.get_fields("set-cookie")).each { |line| @cookies.store(*line[/\A[^;]*/].split("=", 2)) }
      return go(Net::HTTP::Get.new(URI(reply["location"]).request_uri)) if reply.is_a?(Net::HTTPRedirection)

      @page = reply if reply["content-type"].to_s.start_with?("text/html")
      reply
    end
  end

  # Name, time and size of everything below the folders.
  def snapshot(*folders)
    folders.flat_map { |folder| Dir.glob("#{folder}/**/*", File::FNM_DOTMATCH) }
           .to_h { |path| [path, File.lstat(path).then { |stat| [stat.mtime, stat.size] }] }
  end

  # A Redmine of one's own: code and links of the installed one, another database, other files.
  def copy_redmine
    copy = File.join(@dir, "redmine")
    FileUtils.cp_r(FOLDER, copy)
    File.delete(File.join(copy, "instances"), File.join(copy, "config/database.yml"), File.join(copy, "Gemfile.lock"))
    FileUtils.cp("/var/lib/redmine/Gemfile.lock", copy)
    FileUtils.mkdir_p(%w[config files log tmp public].map { |name| File.join(copy, "instances/default", name) })
    database = File.join(@dir, "redmine.sqlite3")
    FileUtils.cp(DATABASE, database)
    %w[config instances/default/config].each do |place|
      File.write(File.join(copy, place, "database.yml"), "production: {adapter: sqlite3, database: #{database}}\n")
    end
    File.write(File.join(copy, "instances/default/config/secret_key.txt"), "no secret at all" * 4)
    reset(database)
    copy
  end

  def start_copy(copy) = start("-e", "production", "-w", "2", "-P", File.join(@dir, "redmine.pid"), dir: copy)

  # The first sign-in is still to come; files of 20 MB may be uploaded.
  def reset(database)
    require "sqlite3"
    require "digest"
    SQLite3::Database.new(database) do |db|
      db.execute("UPDATE users SET salt = 'salt', hashed_password = ?, must_change_passwd = 1 WHERE login = 'admin'",
                 [Digest::SHA1.hexdigest("salt#{Digest::SHA1.hexdigest("admin")}")])
      db.execute("DELETE FROM settings WHERE name = 'attachment_max_size'")
      db.execute("INSERT INTO settings (name, value, updated_on) VALUES ('attachment_max_size', '102400', datetime('now'))")
    end
  end
end
