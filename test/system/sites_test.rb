# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "etc"
require_relative "../server_case"

# Several applications and folders of files behind one address: which host gets which, and that the trouble
# of one is not the trouble of the others.
class SitesTest < ServerCase
  NAMED = 'run(proc { |env| [200, {"content-type" => "text/plain"}, ["%s #{env["PATH_INFO"]} #{Process.pid}"]] })'

  def setup
    super
    application "shop"
    application "blog"
  end

  def application(name) = app(NAMED % name, path: "#{name}/config.ru")

  def ask(server, host, path = "/", **options) = http(server, path, headers: { "host" => host }, **options)

  def body(server, host, path = "/") = ask(server, host, path).body.split.first

  def pools(server) = status(server)["pools"].to_h { |pool| [pool["name"], pool] }

  def two_pools(shop: "", blog: "", workers: 1, sites: "")
    config <<~YAML
      pool_defaults: {workers: #{workers}}
      pools:
        shop: {app: shop, #{shop}}
        blog: {app: blog, #{blog}}
      sites:
        - {host: shop.test, pool: shop, pulse: /up}
        - {host: blog.test, pool: blog}
        #{sites}
    YAML
  end

  # --- hosts

  def test_an_exact_name_wins_over_a_wildcard_and_that_over_the_rest_in_any_order
    write "files/index.html", "files"
    write "shop/public/logo.txt", "the shop's logo"
    sites = ["{root: files}", '{host: "*.example.com", pool: blog}', "{host: [shop.example.com, www.test], pool: shop}"]
    [sites, sites.reverse].each do |list|
      config "pools: {shop: {app: shop}, blog: {app: blog}}\nsites:\n#{list.map { |site| "  - #{site}\n" }.join}"
      server = start("-e", "production")
      assert_equal "shop", body(server, "shop.example.com")
      assert_equal "shop", body(server, "WWW.Test:#{server.port}")
      assert_equal "blog", body(server, "other.example.com")
      assert_equal "blog", body(server, "a.b.example.com.")
      assert_equal "files", body(server, "example.com")
      assert_equal "files", body(server, "127.0.0.1")
      assert_equal "the shop's logo", ask(server, "www.test", "/logo.txt").body
      assert_equal "blog", body(server, "x.example.com", "/logo.txt"), "a root belongs to its site"
      assert_equal "405", ask(server, "files.test", "/index.html", method: "DELETE").code
      assert_equal 0, stop(server)
    end
  end

  def test_a_host_of_no_site_gets_404
    two_pools
    server = start
    assert_equal "404", ask(server, "other.test").code
    assert_equal "shop", body(server, "shop.test")
    assert_equal %w[blog shop], pools(server).keys.sort
  end

  def test_the_pulse_is_each_site_s_own_and_heard_under_any_name
    two_pools sites: "- {root: files}"
    write "files/up", "a file"
    server = start("-e", "production")
    assert_equal "OK", ask(server, "shop.test", "/up").body
    assert_equal "OK", ask(server, "10.0.0.1", "/up").body
    assert_equal "blog", body(server, "blog.test", "/up"), "another application's path"
  end

  # --- what is written wrongly

  def test_several_pools_without_sites_and_names_that_are_not_there_are_faults
    config "pools: {shop: {app: shop}, blog: {app: blog}}\n"
    out, code = leat("check")
    assert_equal 1, code
    assert_match(/leat\.yml:1:28: pools\.blog: two or more pools need sites/, out)
    config "pools: {shop: {app: shop}, blog: {app: blog}}\nsites: [{host: a, pool: shpo}, {pool: blog}]\n"
    out, code = leat("check")
    assert_equal 1, code
    assert_includes out, 'there is no pool "shpo"; the nearest is "shop"'
  end

  def test_variables_for_one_application_mean_none_of_several
    config "pool_defaults: {threads: 2}\npools: {shop: {app: shop}, blog: {app: blog, threads: 1}}\nsites: [{host: shop.test, pool: shop}, {pool: blog}]\n"
    server = start("-e", "production", "-t", "9", env: { "WEB_CONCURRENCY" => "7", "RAILS_MAX_THREADS" => "8" })
    assert_match(/-t: has no effect without exactly one Rack pool/, server.output)
    eventually { pools(server).values.all? { |pool| pool["workers"].any? } }
    assert_equal({ "shop" => 2, "blog" => 1 }, pools(server).transform_values { |pool| pool["workers"].first["threads"] })
    refute(pools(server).values.any? { |pool| pool["min"] == 7 })
  end

  # --- one of them in trouble

  def test_one_that_does_not_load_is_named_and_tried_again_while_the_other_serves
    app 'raise "no database"', path: "blog/config.ru"
    two_pools
    server = start("-e", "production")
    assert_match(/pool blog.*\n.*does not start, is tried again: RuntimeError: no database/, server.output)
    assert_equal "shop", body(server, "shop.test")
    assert_equal "crashing", pools(server)["blog"]["state"]
    assert_includes pools(server)["blog"]["error"], "no database"
    assert_equal "up", pools(server)["shop"]["state"]
    assert_equal 0, leat("healthcheck").last
    application "blog"
    eventually(20, "it heals") { pools(server)["blog"]["state"] == "up" }
    assert_equal "blog", body(server, "blog.test")
  end

  def test_one_that_cannot_even_be_tried_does_not_stop_the_other
    two_pools blog: "ruby: no-such-ruby"
    server = start("-e", "production", "-q", wait: false)
    eventually(START_SECONDS, "it is ready") { server.output.include?("ready: PID") }
    assert_match(/pool blog does not start, is tried again: ruby: /, server.output)
    assert_equal "shop", body(server, "shop.test")
  end

  def test_when_none_comes_up_the_start_fails_with_the_reason_of_each
    app 'raise "no database"', path: "blog/config.ru"
    app 'raise "no cache"', path: "shop/config.ru"
    two_pools
    out, code = leat("start", "-p", free_port, "-e", "production")
    assert_equal 1, code
    assert_match(/pool shop: RuntimeError: no cache.*pool blog: RuntimeError: no database/m, out)
  end

  def test_a_killed_pool_comes_back_and_the_other_notices_nothing
    two_pools
    server = start("-e", "production")
    witness = Thread.new { Array.new(50) { body(server, "shop.test") } }
    victims = pools(server)["blog"]["workers"].map { |worker| worker["pid"] }
    victims.each { |pid| Process.kill("KILL", pid) }
    assert_equal "blog", body(server, "blog.test"), "it waits for the next worker"
    assert_equal ["shop"] * 50, witness.value
    assert_equal({ "shop" => 0, "blog" => 1 }, pools(server).transform_values { |pool| pool["exits"]["killed"] })
  end

  # --- verbs and signals

  def test_restart_means_all_of_them_or_the_one_that_is_named
    two_pools
    server = start("-e", "production")
    generations = -> { pools(server).transform_values { |pool| pool["workers"].map { |worker| worker["generation"] }.max } }
    out, code = leat("restart", "--pool", "blog")
    assert_equal [0, { "shop" => 1, "blog" => 2 }], [code, generations.call], out
    out, code = leat("restart")
    assert_equal [0, { "shop" => 2, "blog" => 3 }], [code, generations.call], out
    out, code = leat("restart", "--pool", "blgo")
    assert_equal 1, code
    assert_match(/no pool "blgo".*shop, blog/, out)
    Process.kill("TTIN", server.pid)
    eventually { pools(server).transform_values { |pool| pool["workers"].size } == { "shop" => 2, "blog" => 1 } }
  end

  def test_on_demand_each_is_started_by_its_own_first_request
    two_pools workers: "0..1"
    server = start("-e", "production")
    assert_equal({ "shop" => "down", "blog" => "down" }, pools(server).transform_values { |pool| pool["state"] })
    assert_equal "blog", body(server, "blog.test")
    assert_equal({ "shop" => "down", "blog" => "up" }, pools(server).transform_values { |pool| pool["state"] })
    assert_equal "shop", body(server, "shop.test")
    assert_equal 0, stop(server)
  end

  def test_each_has_its_own_environment_and_log
    code = 'puts "hello from #{ENV["NAME"]}"; $stdout.flush; run(proc { [200, {}, [ENV["NAME"]]] })'
    app code, path: "shop/config.ru"
    app code, path: "blog/config.ru"
    two_pools shop: "env: {NAME: s}, log: shop.log", blog: "env: {NAME: b}, log: blog.log"
    server = start("-e", "production")
    assert_equal %w[s b], [body(server, "shop.test"), body(server, "blog.test")]
    assert_equal ["hello from s\n", "hello from b\n"], [File.read(File.join(@dir, "shop.log")), File.read(File.join(@dir, "blog.log"))]
  end

  # --- routes

  MOUNTED = <<~'RUBY'
    run(proc { |env| [200, { "content-type" => "text/plain" }, [env.values_at("SCRIPT_NAME", "PATH_INFO", "REQUEST_URI", "QUERY_STRING").push(ENV["RAILS_RELATIVE_URL_ROOT"]).inspect]] })
  RUBY

  def routes
    app MOUNTED, path: "blog/config.ru"
    write "blog/public/a.txt", "the blog's file"
    write "shop/public/a.txt", "the shop's file"
    write "pages/index.html", "pages"
    config <<~YAML
      pools: {shop: {app: shop}, blog: {app: blog}}
      sites:
        - {host: shop.test, pool: shop, routes: [{path: /blog, pool: blog}, {path: /blog/pages, root: pages}]}
        - {host: old.test, redirect: "https://shop.test"}
        - {host: older.test, redirect: {to: "http://shop.test/archive/", status: 302}}
    YAML
    start("-e", "production")
  end

  def test_an_application_below_a_path_has_its_place_and_its_files
    server = routes
    assert_equal "shop", body(server, "shop.test", "/blogger")
    assert_equal ["/blog", "/x/%20y", "/blog/x/%20y?a=b", "a=b", "/blog"].inspect, ask(server, "shop.test", "/blog/x/%20y?a=b").body
    assert_equal ["/blog", "", "/blog", "", "/blog"].inspect, ask(server, "shop.test", "/blog").body
    assert_equal "the blog's file", ask(server, "shop.test", "/blog/a.txt").body
    assert_equal "the shop's file", ask(server, "shop.test", "/a.txt").body
    assert_equal "pages", ask(server, "shop.test", "/blog/pages/").body
    assert_equal "404", ask(server, "shop.test", "/blog/pages/none").code
    assert_equal ["301", "/blog/pages/?a"], ask(server, "shop.test", "/blog/pages?a").then { |reply| [reply.code, reply["location"]] }
  end

  def test_a_site_that_has_moved_answers_with_its_new_address
    server = routes
    reply = ask(server, "old.test", "/a/%C3%A9?b=c&d", method: "POST", body: "x")
    assert_equal ["308", "https://shop.test/a/%C3%A9?b=c&d"], [reply.code, reply["location"]]
    reply = ask(server, "older.test", "/")
    assert_equal ["302", "http://shop.test/archive/"], [reply.code, reply["location"]]
  end

  where(root?, "root") do
    def test_each_runs_as_its_own_user
      code = 'run(proc { [200, {}, [Process.uid.to_s]] })'
      app code, path: "shop/config.ru"
      app code, path: "blog/config.ru"
      File.chmod(0o755, @dir)
      two_pools shop: "user: nobody", blog: "user: daemon"
      server = start("-e", "production")
      uids = %w[nobody daemon].map { |name| Etc.getpwnam(name).uid.to_s }
      assert_equal uids, [body(server, "shop.test"), body(server, "blog.test")]
    end
  end
end
