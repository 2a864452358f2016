# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "shellwords"

# `leat install` and `uninstall`: units below another root, as for an image, and in a user's own folder. What systemd
# thinks of them is asked of its tools, which need no running systemd.
class InstallTest < ServerCase
  OK = 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["served"]] })'
  NOBODY = 65_534
  SYSTEM = "etc/systemd/system"

  def setup
    super
    @image = File.join(@dir, "image")
    FileUtils.mkdir_p(@image)
  end

  def shop(folder = "shop")
    app OK, path: "#{folder}/config.ru"
    File.join(@dir, folder)
  end

  def install(*arguments, **options) = leat("install", "--root", @image, *arguments, **options)

  def uninstall(*arguments) = leat("uninstall", "--root", @image, *arguments)

  # Every path below a folder, with what links say and files hold.
  def tree(folder)
    Dir.glob("**/*", File::FNM_DOTMATCH, base: folder).reject { |path| path == "." }.sort.to_h do |path|
      full = File.join(folder, path)
      [path, File.symlink?(full) ? File.readlink(full) : (File.read(full) if File.file?(full))]
    end
  end

  def unit(name) = File.read(File.join(@image, SYSTEM, name))

  # The values of a key, in order.
  def values(text, key) = text.scan(/^#{key}=(.*)$/).flatten

  # The words of a command as systemd reads them.
  def words(command) = Shellwords.split(command).map { |word| word.gsub("%%", "%").gsub("$$", "$") }

  # --- writing

  def test_print_shows_both_units_and_writes_nothing
    out, code = leat("install", "--print", "-p", "8080", shop)
    assert_equal 0, code, out
    assert_equal ["# /etc/systemd/system/leat-shop.service", "# /etc/systemd/system/leat-shop.socket"], out.scan(%r{^# /etc.*$})
    assert_equal ["0.0.0.0:8080", "[::]:8080"].first(values(out, "ListenStream").size), values(out, "ListenStream")
    refute Dir.exist?("/etc/systemd/system/leat-shop.service")
    assert_empty tree(@image)
  end

  def test_the_unit_starts_what_was_asked_for_and_keeps_the_link
    folder = shop("deploy/releases/7")
    File.symlink("releases/7", File.join(@dir, "deploy/current"))
    write "server.yml", "pid: leat.pid\n"
    current = File.join(@dir, "deploy/current")
    out, code = install("-e", "staging", "-C", "server.yml", "-b", "127.0.0.1:8080", "-b", "unix:web.sock", "-w", "2..4", current)
    assert_equal 0, code, out
    text = unit("leat-deploy.service")
    assert_equal [binary, "start", "-e", "staging", "--bind", "127.0.0.1:8080", "--bind", "unix:web.sock", "--config", "#{@dir}/server.yml",
                  "--workers", "2..4", current].sort, words(values(text, "ExecStart").first).sort
    assert_equal [binary, "reload", "-e", "staging", "--config", "#{@dir}/server.yml", current], words(values(text, "ExecReload").first)
    assert_equal [current], values(text, "WorkingDirectory")
    refute_includes text, folder
    assert_equal ["127.0.0.1:8080", "#{current}/web.sock"], values(unit("leat-deploy.socket"), "ListenStream")
  end

  def test_the_environment_is_production_unless_one_is_named
    assert_equal 0, install(shop).last
    assert_equal %w[-e production], words(values(unit("leat-shop.service"), "ExecStart").first)[2, 2]
    out, code = install("-e", "development", shop)
    assert_equal 1, code
    assert_match(/the environment is development/, out)
    out, code = install(shop, env: { "RAILS_ENV" => "development" })
    assert_equal [1, true], [code, out.include?("the environment is development")]
  end

  def test_path_and_ruby_of_the_shell_are_kept_and_secrets_are_not
    path = "#{ENV.fetch("PATH")}:/opt/my tools/bin"
    assert_equal 0, install(shop, env: { "PATH" => path, "SECRET_KEY_BASE" => "abc", "WEB_CONCURRENCY" => "3", "RBENV_VERSION" => "3.1" }).last
    text = unit("leat-shop.service")
    kept = values(text, "Environment").map { |word| words(word).first.split("=", 2) }.to_h
    assert_equal path, kept["PATH"]
    assert_equal %w[3 3.1], kept.values_at("WEB_CONCURRENCY", "RBENV_VERSION")
    assert_equal status_of_ruby, `#{kept["LEAT_RUBY"].shellescape} -e 'print RUBY_VERSION'`
    refute_includes text, "abc"
    assert_equal ["-/etc/leat/shop.env"], values(text, "EnvironmentFile")
  end

  def status_of_ruby = leat("print", File.join(@dir, "shop")).first[/runs with \S+ (\S+)/, 1]

  def test_patience_is_longer_than_what_the_server_allows_itself
    folder = shop
    write "shop/leat.yml", "start_timeout: 5m\ntimeouts: {drain_delay: 10s, drain: 100s, stream_drain: 30s}\n"
    assert_equal 0, install(folder).last
    text = unit("leat-shop.service")
    assert_operator values(text, "TimeoutStartSec").first.to_i, :>, 300
    assert_operator values(text, "TimeoutStopSec").first.to_i, :>, 140
  end

  def test_twice_changes_nothing_and_a_changed_setting_rewrites
    folder = shop
    out, = install("-p", "8080", folder)
    assert_match(%r{^wrote #{@image}/#{SYSTEM}/leat-shop.service$}, out)
    first = tree(@image)
    times = Dir["#{@image}/#{SYSTEM}/*"].map { |file| File.lstat(file).mtime }
    out, code = install("-p", "8080", folder)
    assert_equal ["leat-shop.service is installed and nothing has changed\n", 0], [out, code]
    assert_equal [first, times], [tree(@image), Dir["#{@image}/#{SYSTEM}/*"].map { |file| File.lstat(file).mtime }]
    assert_equal 0, install("-p", "8081", folder).last
    refute_equal first, tree(@image)
    assert_includes unit("leat-shop.socket"), ":8081"
    assert_equal first.keys, tree(@image).keys
  end

  def test_uninstall_removes_what_install_wrote_and_nothing_else
    FileUtils.mkdir_p(File.join(@image, SYSTEM, "multi-user.target.wants"))
    File.symlink("/lib/systemd/system/ssh.service", File.join(@image, SYSTEM, "multi-user.target.wants/ssh.service"))
    write "image/#{SYSTEM}/leat-shop.service.d/own.conf", "[Service]\nNice=5\n"
    write "image/etc/leat/shop.env", "A=1\n"
    other = shop("other")
    assert_equal 0, install(other).last
    before = tree(@image)
    folder = shop
    assert_equal 0, install(folder).last
    refute_equal before, tree(@image)
    FileUtils.rm_rf(folder)
    out, code = uninstall(folder)
    assert_equal 0, code, out
    assert_equal before, tree(@image)
    assert_equal ["no unit of leat install is there for #{folder}\n", 0], uninstall(folder)
  end

  def test_units_of_others_are_neither_changed_nor_removed
    write "image/#{SYSTEM}/leat-shop.service", "[Unit]\nDescription=by hand\n"
    before = tree(@image)
    [install(shop), uninstall(shop)].each { |out, _| assert_match(/leat-shop.service was not written by leat install/, out) }
    assert_equal 1, install(shop).last
    assert_equal before, tree(@image)
    assert_equal 0, install("--name", "mine", shop).last
    assert_includes unit("leat-mine.service"), "EnvironmentFile=-/etc/leat/mine.env"
    out, code = install("--name", "mine", shop("b/shop"))
    assert_equal [1, true], [code, out.include?("leat-mine.service is there for #{@dir}/shop")]
    assert_match(/stays/, uninstall("--name", "nobodys", shop).first + uninstall(shop).first)
    assert_equal 0, uninstall("--name", "mine").last
    assert_equal before.keys, tree(@image).keys
  end

  def test_sockets_that_one_unit_cannot_hold_are_left_to_the_server
    folder = shop
    write "shop/leat.yml", "listen: [{address: \"unix:a.sock\", mode: 0660}, {address: \"unix:b.sock\", mode: 0600}, \"127.0.0.1:8080\"]\n"
    assert_equal 0, install(folder).last
    assert_equal ["#{folder}/a.sock", "127.0.0.1:8080"], values(unit("leat-shop.socket"), "ListenStream")
    assert_equal ["0660"], values(unit("leat-shop.socket"), "SocketMode")
    write "shop/leat.yml", "listen: \"unix:#{"x" * 110}.sock\"\n"
    out, code = install(folder)
    assert_equal 0, code, out
    assert_match(/^removed .*leat-shop.socket$/, out)
    assert_equal ["leat-shop.service"], tree(@image).keys.grep(/leat-shop/).map { |path| File.basename(path) }.uniq
    refute_includes unit("leat-shop.service"), ".socket"
    assert_equal 0, uninstall(folder).last
    assert_empty tree(@image).keys.grep(/leat/)
  end

  def test_a_folder_of_files_needs_no_ruby
    write "pages/index.html", "hello"
    out, code = install(File.join(@dir, "pages"), env: { "PATH" => "/nowhere" })
    assert_equal 0, code, out
    refute_includes unit("leat-pages.service"), "LEAT_RUBY"
  end

  # --- variables of the unit

  def test_the_units_file_of_variables_counts_and_the_shell_does_not
    folder = shop
    write "shop/leat.yml", "listen: \"127.0.0.1:${WEB_PORT}\"\n"
    out, code = install(folder, env: { "WEB_PORT" => "8080" })
    assert_equal 1, code
    assert_match(/leat.yml:1:\d+: .*WEB_PORT is not set/, out)
    assert_match(%r{the unit has its variables from /etc/leat/shop.env, not from this shell}, out)
    write "image/etc/leat/shop.env", "# of the unit\nWEB_PORT=8081\n"
    assert_equal 0, install(folder, env: { "WEB_PORT" => "8080" }).last
    assert_equal ["127.0.0.1:8081"], values(unit("leat-shop.socket"), "ListenStream")
  end

  # --- refusals

  def test_what_cannot_work_is_refused_with_its_reason
    FileUtils.mkdir_p(File.join(@dir, "empty"))
    {
      [File.join(@dir, "empty")] => /nothing to serve in .*empty/,
      [File.join(@dir, "nowhere")] => /there is no folder .*nowhere/,
      ["-d", shop] => /-d has no place in a unit/,
      ["--name", "a b", shop] => /--name is letters, digits/,
      [shop("line\nbreak")] => /has a control character in it/,
      ["-C", write("bad.yml", "lisen: 80\n"), shop] => /lisen/
    }.each do |arguments, reason|
      out, code = install(*arguments)
      assert_equal 1, code, out
      assert_match reason, out
    end
    assert_empty tree(@image)
  end

  # --- what systemd says

  where(system("systemctl --version", out: File::NULL, err: File::NULL), "systemd's tools") do
    def verify(*files)
      out, status = Open3.capture2e("systemd-analyze", "verify", "--man=no", *files.map { |file| File.join(@image, SYSTEM, file) })
      assert status.success?, out
      assert_empty out
    end

    def test_systemd_finds_nothing_to_complain_of_and_both_enabled
      folder = shop
      write "shop/leat.yml", "listen: [8080, {address: \"unix:web.sock\", mode: 0660}]\n"
      assert_equal 0, install(folder).last
      verify "leat-shop.service", "leat-shop.socket"
      states = `systemctl --root=#{@image} is-enabled leat-shop.service leat-shop.socket`
      assert_equal "enabled\nenabled\n", states
      before = tree(@image)
      assert system("systemctl", "--root=#{@image}", "enable", "leat-shop.service", out: File::NULL, err: File::NULL)
      assert_equal before, tree(@image)
    end

    def test_odd_names_mean_the_same_to_systemd
      folder = shop("my shop 100% $HOME \"x\"")
      assert_equal 0, install("-b", "unix:tmp/50%.sock", folder).last
      verify "leat-my-shop-100---HOME--x-.service", "leat-my-shop-100---HOME--x-.socket"
      text = unit("leat-my-shop-100---HOME--x-.service")
      assert_equal folder, words(values(text, "ExecStart").first).last
      assert_equal folder.gsub("%", "%%"), values(text, "WorkingDirectory").first
    end
  end

  where(system("systemd-socket-activate --version", out: File::NULL, err: File::NULL), "systemd-socket-activate") do
    # As systemd would: the sockets of one unit, folder, variables and command of the other.
    def activate(name, notify)
      service = unit("leat-#{name}.service")
      sockets = values(unit("leat-#{name}.socket"), "ListenStream").flat_map { |address| ["-l", address.gsub("%%", "%")] }
      variables = values(service, "Environment").flat_map { |word| ["-E", words(word).first] }
      pid = spawn_child(clean_env, "systemd-socket-activate", *sockets, *variables, "-E", "NOTIFY_SOCKET=#{notify}",
                        "-E", "XDG_RUNTIME_DIR=#{@dir}/run", *words(values(service, "ExecStart").first),
                        chdir: values(service, "WorkingDirectory").first.gsub("%%", "%"), out: "#{@dir}/out", err: [:child, :out])
      eventually { File.read("#{@dir}/out").include?("Listening on") }
      pid
    end

    def test_what_was_installed_serves_on_the_sockets_that_systemd_holds
      port = free_port
      folder = shop("my shop 100%")
      assert_equal 0, install("-b", "127.0.0.1:#{port}", "-b", "unix:web.sock", folder).last
      manager = Socket.new(:UNIX, :DGRAM)
      manager.bind(Addrinfo.unix("#{@dir}/notify"))
      pid = activate("my-shop-100-", "#{@dir}/notify")
      answer = eventually(START_SECONDS) { Net::HTTP.get("127.0.0.1", "/", port) rescue nil }
      assert_equal "served", answer
      texts = []
      eventually { texts << manager.recv(1000) until texts.last.to_s.start_with?("READY=1"); true }
      assert_match(/^MAINPID=#{pid}$/, texts.last)
      Process.kill("TERM", pid)
      assert_equal 0, wait_exit(pid)
      assert File.socket?(File.join(folder, "web.sock"))
    ensure
      manager&.close
    end
  end

  # --- a user of his own

  AS_NOBODY = ["setpriv", "--reuid=#{NOBODY}", "--regid=#{NOBODY}", "--clear-groups"].freeze

  where(root? && system(*AS_NOBODY, BINARY, "version", out: File::NULL, err: File::NULL), "root, and a folder that everybody may enter") do
    # The command as a user without rights, whose home is in the test's folder.
    def as_nobody(*arguments, env: {})
      home = File.join(@dir, "home")
      FileUtils.mkdir_p(home)
      FileUtils.chown_R(NOBODY, NOBODY, home)
      File.chmod(0o755, @dir)
      own = clean_env.merge("HOME" => home, "XDG_CONFIG_HOME" => nil, **env)
      out, status = Open3.capture2e(own, *AS_NOBODY, binary, *arguments.map(&:to_s), chdir: @dir, stdin_data: "")
      [out, status.exitstatus]
    end

    def test_without_root_it_is_a_unit_of_the_user
      folder = shop
      File.chmod(0o755, folder)
      out, code = as_nobody("install", "-p", "8080", folder)
      assert_equal 0, code, out
      files = tree(File.join(@dir, "home"))
      assert_includes files, ".config/systemd/user/leat-shop.service"
      assert_equal "#{@dir}/home/.config/systemd/user/leat-shop.service", files[".config/systemd/user/default.target.wants/leat-shop.service"]
      assert_equal "#{@dir}/home/.config/systemd/user/leat-shop.socket", files[".config/systemd/user/sockets.target.wants/leat-shop.socket"]
      assert_match(/systemd does not run here/, out)
      assert_match(/loginctl enable-linger nobody/, out)
      refute_match(/^Protect|^Capability/, files[".config/systemd/user/leat-shop.service"])
      assert_match(/nothing has changed/, as_nobody("install", "-p", "8080", folder).first)
      assert_equal 0, as_nobody("uninstall", folder).last
      assert_empty tree(File.join(@dir, "home")).compact
    end

    # Master keeps what the unit leaves it: it listens, becomes another user, signals and restarts.
    def test_the_capabilities_of_the_unit_are_enough
      folder = shop
      assert_equal 0, install(folder).last
      capabilities = values(unit("leat-shop.service"), "CapabilityBoundingSet").first.downcase.gsub("cap_", "+").tr(" ", ",")
      port, control, out = free_port, File.join(@dir, "control.sock"), File.join(@dir, "capable")
      FileUtils.chmod(0o755, [@dir, folder])
      pid = spawn_child(clean_env, "setpriv", "--bounding-set=-all,#{capabilities}", binary, "start", "-e", "production", "-w", "1", "-p", port.to_s,
                        "-u", "nobody", "-l", File.join(@dir, "server.log"), "--control", control, folder, out: out, err: [:child, :out])
      eventually(START_SECONDS) { Net::HTTP.get("127.0.0.1", "/", port) == "served" rescue false }
      refute_equal "000001ffffffffff", File.read("/proc/#{pid}/status")[/^CapBnd:\s+(\h+)/, 1]
      assert_equal [NOBODY], children_of(pid).map { |child, _| File.stat("/proc/#{child}").uid }.uniq
      out, code = leat("restart", "--control", control)
      assert_equal 0, code, out
      assert_equal [], JSON.parse(leat("memory", "--json", "--control", control).first)["processes"].select { |process| process["pss_bytes"].nil? }
      Process.kill("TERM", pid)
      assert_equal 0, wait_exit(pid)
    end

    def test_a_port_of_roots_is_refused_to_a_user
      port = File.read("/proc/sys/net/ipv4/ip_unprivileged_port_start").to_i
      return assert_equal(0, port) if port < 81

      out, code = as_nobody("install", "-p", "80", shop)
      assert_equal 1, code
      assert_match(/0\.0\.0\.0:80 needs root/, out)
    end
  end
end
