# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require_relative "../rails_app"

# What an application may do around the fork, what it must not leave open, and what is done for it.
class HooksTest < ServerCase
  include RailsApp

  OK = 'run(proc { |_env| [200, {"content-type" => "text/plain"}, ["ok"]] })'

  def production(*more) = ["-e", "production", "-P", File.join(@dir, "leat.pid"), *more]
  def lines(path) = File.exist?(File.join(@dir, path)) ? File.readlines(File.join(@dir, path), chomp: true) : []

  # --- config/leat.rb

  STEPS = <<~RUBY
    def note(text) = File.open("steps", "a") { |file| file.syswrite("\#{text} \#{$$}\n") }

    before_fork { note "first" }
    before_fork { note "second" }
    after_fork { |index| note "after \#{index}" }
    before_exit { note "exit" }
  RUBY

  def test_hooks_run_in_order_in_the_process_that_they_are_for
    app "File.write('steps', \"load \#{$$}\n\"); at_exit { File.open('steps', 'a') { |f| f.syswrite(\"at_exit \#{$$}\n\") } }\n#{OK}"
    write "config/leat.rb", STEPS
    server = start(*production("-w", "2"))
    eventually { pool(server)["slots"]["total"] == 6 }
    mold = processes(server, "mold").first
    both = workers(server)
    assert_equal ["load #{mold}", "first #{mold}", "second #{mold}"], lines("steps").first(3)
    assert_equal both.sort, lines("steps").drop(3).map { |line| line[/\Aafter [01] (\d+)\z/, 1].to_i }.sort
    Process.kill("TERM", both.first)
    eventually { lines("steps").last(3).include?("exit #{both.first}") && lines("steps").grep(/after/).size == 3 && pool(server)["slots"]["total"] == 6 }
    assert_equal 0, stop(server)
    left = lines("steps").select { |line| line.start_with?("exit") }.map { |line| line[/\d+/].to_i }
    assert_equal 3, left.uniq.size
    assert_empty both - left
    left.each { |pid| assert_operator lines("steps").index("exit #{pid}"), :<, lines("steps").index("at_exit #{pid}") }
    assert_equal 1, lines("steps").grep(/first/).size
  end

  def test_workers_that_load_by_themselves_run_after_fork_and_before_exit_only
    app OK
    write "config/leat.rb", STEPS
    config "preload: false\nworkers: 1\n"
    server = start(*production)
    pid = workers(server).first
    assert_equal 0, stop(server)
    assert_equal ["after 0 #{pid}", "exit #{pid}"], lines("steps")
  end

  def test_a_hook_that_raises_fails_the_start_with_its_name_and_line
    app OK
    { "before_fork { raise IOError, 'still open' }\n" => ["IOError: still open", "before_fork", 1],
      "\nafter_fork do |index|\n  raise \"no cache for \#{index}\"\nend\n" => ["RuntimeError: no cache for 0", "after_fork", 3] }.each do |text, (words, hook, line)|
      write "config/leat.rb", text
      out, code = leat("start", "-d", *production("-w", "1", "-p", free_port))
      assert_equal 1, code, out
      assert_match(%r{#{words} \(#{Regexp.escape(File.realpath(@dir))}/config/leat\.rb:#{line}\)\s+raised by the hook #{hook} of config/leat\.rb}, out)
    end
  end

  def test_a_before_exit_that_raises_is_logged_and_the_worker_ends_well
    app OK
    write "config/leat.rb", "before_exit { raise 'too late' }\n"
    server = start(*production("-w", "1"))
    assert_equal 0, stop(server)
    assert_match(/error .*in=before_exit RuntimeError: too late at .*leat\.rb:1/, server.output)
    assert_match(/reason=normal .*exited with status 0/, server.output)
  end

  # Whoever starts again at once does not meet the one that has failed.
  def test_a_failed_start_is_over_when_it_is_told
    app "#{OK}\nat_exit { sleep 0.3 }\n"
    write "config/leat.rb", "after_fork { raise 'no cache' }\n"
    5.times do
      out, code = leat("start", "-d", *production("-w", "2", "-p", free_port))
      assert_equal 1, code
      assert_match(/no cache/, out)
      refute_match(/already running/, out)
    end
  end

  def test_a_hook_of_another_server_is_named_by_what_it_is_here
    app OK
    { "\non_worker_boot { 1 }\n" => /no hook on_worker_boot; it is after_fork here \(.*leat\.rb:2\)/,
      "workers_boot { 1 }\n" => /no hook workers_boot; there are before_fork, after_fork, before_exit \(.*leat\.rb:1\)/,
      "after_fork\n" => /after_fork takes a block \(.*leat\.rb:1\)/ }.each do |text, words|
      write "config/leat.rb", text
      out, code = leat("start", "-d", *production("-w", "1", "-p", free_port))
      assert_equal 1, code, out
      assert_match words, out
    end
  end

  # --- what a fork does not stand

  # Answers with the PID that it gets back from a server over its connection.
  ECHO = <<~RUBY
    require "socket"
    ADDRESS = ["127.0.0.1", Integer(ENV.fetch("ECHO"))]
    OPEN = TCPSocket.new(*ADDRESS)
    run(proc { |_env| OPEN.puts(Process.pid); [200, {"content-type" => "text/plain"}, ["\#{Process.pid} \#{OPEN.gets}"]] })
  RUBY

  def with_echo
    listener = TCPServer.new("127.0.0.1", 0)
    accepts = Thread.new do
      loop do
        Thread.new(listener.accept) do |socket|
          while (line = socket.gets)
            socket.write(line)
          end
        rescue SystemCallError
          nil
        end
      end
    end
    yield listener.addr[1].to_s
  ensure
    accepts&.kill
    listener&.close
  end

  def test_a_connection_of_loading_time_is_never_shared_by_default
    app ECHO
    with_echo do |port|
      server = start(*production("-w", "4", "-t", "1"), env: { "ECHO" => port })
      eventually { pool(server)["slots"]["total"] == 4 }
      answers = Array.new(8) { Thread.new { Array.new(25) { get(server, "/").body } } }.flat_map(&:value)
      assert_equal 200, answers.size
      answers.each { |answer| answer.split.then { |mine, echoed| assert_equal mine, echoed } }
      place = "#{File.realpath(@dir)}/config.ru:3"
      assert_equal 1, server.output.scan(/a connected socket is open after loading \(#{Regexp.escape(place)}\): workers load by themselves/).size
      assert_equal 1, server.output.scan(/config\.ru:3/).size
    end
  end

  def test_preloading_in_spite_of_open_connections_and_threads_names_each_with_its_line
    app "require 'socket'\nA = TCPSocket.new('127.0.0.1', ENV['ECHO'])\nB = Socket.tcp('127.0.0.1', ENV['ECHO'])\n" \
        "C = Thread.new { sleep }\nThread.new { sleep }.name = 'poller'\nD = Thread.new { sleep }.tap { |t| t.thread_variable_set(:fork_safe, true) }\n#{OK}"
    config "preload: true\nworkers: 2\n"
    with_echo do |port|
      server = start(*production, env: { "ECHO" => port })
      eventually { pool(server)["slots"]["total"] == 6 }
      ru = "#{File.realpath(@dir)}/config.ru"
      assert_includes server.output, "2 connected sockets are open after loading (#{ru}:2, #{ru}:3): all workers share it"
      assert_includes server.output, "2 threads were started while loading and will not exist in the workers: #{ru}:4, #{ru}:5 (poller); start them in after_fork"
      assert_equal 2, server.output.scan(/after loading|while loading/).size
      assert_equal "200", get(server, "/").code
    end
  end

  def test_a_connection_that_before_fork_closes_keeps_the_preloading
    app "#{ECHO.sub("OPEN = ", "$open = ").gsub("OPEN.", "$open.")}"
    write "config/leat.rb", "before_fork { $open.close }\nafter_fork { $open = TCPSocket.new(*ADDRESS) }\n"
    with_echo do |port|
      server = start(*production("-w", "2", "-t", "1"), env: { "ECHO" => port })
      eventually { pool(server)["slots"]["total"] == 2 }
      20.times { get(server, "/").body.split.then { |mine, echoed| assert_equal mine, echoed } }
      refute_match(/after loading/, server.output)
    end
  end

  # It keeps the method that opens sockets under another name.
  def test_libraries_that_rename_what_opens_sockets_work_while_loading
    app "require 'resolv-replace'\nS = TCPSocket.new('127.0.0.1', ENV['ECHO'])\nS.close\n#{OK}"
    with_echo do |port|
      server = start(*production("-w", "1"), env: { "ECHO" => port })
      assert_equal "ok", get(server, "/").body
    end
  end

  # --- ActiveRecord

  RECORDS = <<~RUBY
    class PagesController < ActionController::Base
      def show
        one = ApplicationRecord.connection.select_value("select 1")
        two = OtherRecord.connection.select_value("select 2")
        replica = OtherRecord.connected_to(role: :reading) { OtherRecord.connection.select_value("select 3") }
        render(plain: [one, two, replica, DESCRIPTORS.count { |number, path| File.readlink("/proc/self/fd/\#{number}") == path rescue false }].join(" "))
      end
    end
  RUBY

  # Connections are used while the application loads: the mold must have none of them, and workers their own.
  def test_active_record_is_disconnected_before_the_fork_in_every_database_and_role
    write_rails("config/database.yml" => <<~YAML, "app/controllers/pages_controller.rb" => RECORDS, "app/models/application_record.rb" => <<~MODEL, "app/models/other_record.rb" => <<~OTHER, "config.ru" => <<~RU)
      production:
        primary: {adapter: sqlite3, database: "db/one.sqlite3"}
        other: {adapter: sqlite3, database: "db/two.sqlite3"}
        other_replica: {adapter: sqlite3, database: "db/two.sqlite3", replica: true}
    YAML
      class ApplicationRecord < ActiveRecord::Base
        primary_abstract_class
      end
    MODEL
      class OtherRecord < ActiveRecord::Base
        self.abstract_class = true
        connects_to database: {writing: :other, reading: :other_replica}
      end
    OTHER
      require_relative "config/environment"
      ApplicationRecord.connection.select_value("select 1")
      OtherRecord.connection.select_value("select 1")
      OtherRecord.connected_to(role: :reading) { OtherRecord.connection.select_value("select 1") }
      DESCRIPTORS = Dir.children("/proc/self/fd").to_h { |number| [number, (File.readlink("/proc/self/fd/\#{number}") rescue nil)] }
                       .select { |_, path| path.to_s.end_with?("sqlite3") }
      File.write("opened", DESCRIPTORS.size.to_s)
      run Rails.application
    RU
    server = start(*production("-w", "2"))
    assert_equal ["3"], lines("opened")
    mold = processes(server, "mold").first
    assert_empty Dir.children("/proc/#{mold}/fd").map { |number| File.readlink("/proc/#{mold}/fd/#{number}") rescue "" }.grep(/sqlite3/)
    10.times { assert_match(/\A1 2 3 \d\z/, get(server, "/").body) }
    refute_match(/ error | warn pool/, server.output)
  end

  # Rails 6.1 and 7.0 know the connections of one role at a time, unless asked in another way.
  HANDLERS = {
    [5, 2] => "def connection_pool_list = POOLS",
    [6, 1] => "def connection_pool_list(role = :writing) = role == :writing ? [POOLS[0]] : []\ndef all_connection_pools = POOLS",
    [7, 1] => "def connection_pool_list(role = nil) = role == :all ? POOLS : []\ndef all_connection_pools = raise('deprecated')"
  }.freeze

  def test_every_version_of_active_record_is_asked_for_all_of_its_connections
    HANDLERS.each do |(major, minor), methods|
      out, status = Open3.capture2e(RbConfig.ruby, "-r", File.join(ROOT, "lib/leat/inherited.rb"), "-e", <<~RUBY)
        POOLS = Array.new(2) { Struct.new(:open) { def disconnect! = self.open = false }.new(true) }
        HANDLER = Object.new
        class << HANDLER
          #{methods}
        end
        module ActiveRecord
          module VERSION
            MAJOR, MINOR = #{major}, #{minor}
          end
          class Base
            def self.connection_handler = HANDLER
          end
        end
        Leat::Inherited.release_connections
        p POOLS.map(&:open)
      RUBY
      assert_equal "[false, false]\n", out, [major, minor]
      assert_predicate status, :success?
    end
  end

  # --- the allocator

  JEMALLOC = Dir["/usr/lib/*/libjemalloc.so.2", "/usr/lib{,64}/libjemalloc.so.2", "/usr/local/lib/libjemalloc.so.2"].first
  ALLOCATOR = 'run(proc { |_env| [200, {}, ["#{File.read("/proc/self/maps")[/jemalloc/]} #{ENV["MALLOC_ARENA_MAX"]} #{ENV["LD_PRELOAD"]}"]] })'

  def test_workers_get_the_arenas_that_malloc_names_unless_the_environment_does
    app ALLOCATOR
    config "malloc: {arenas: 2}\nworkers: 1\n"
    server = start(*production)
    assert_equal " 2 ", get(server, "/").body
    assert_equal 0, stop(server)
    config "malloc: {arenas: 2}\nworkers: 1\nenv: {MALLOC_ARENA_MAX: 3}\n"
    server = start(*production)
    assert_equal " 3 ", get(server, "/").body
    assert_match(/malloc\.arenas: 2 /, leat("print", "-e", "production").first)
  end

  where(JEMALLOC, "libjemalloc2") do
    def test_workers_run_with_jemalloc_when_malloc_says_so
      app ALLOCATOR
      config "malloc: jemalloc\nworkers: 1\n"
      server = start(*production)
      assert_equal "jemalloc  #{JEMALLOC}", get(server, "/").body
      front = processes(server, "front").first
      refute_match(/jemalloc/, File.read("/proc/#{front}/maps"))
    end
  end

  # --- garbage and memory

  GARBAGE = <<~RUBY
    KEPT = []
    run(proc { |_env|
      before = GC.stat(:major_gc_count)
      300.times { KEPT << "x" * 60 }
      KEPT.shift(300) if KEPT.size > 60_000
      3000.times { "y" * 60 }
      [200, {"content-type" => "text/plain"}, ["\#{before} \#{GC.stat(:major_gc_count)}"]]
    })
  RUBY

  # One client that asks for a page and its files, again and again: the worker is idle meanwhile.
  def test_major_collections_happen_between_requests
    app GARBAGE
    write "public/file.txt", "file"
    server = start(*production("-w", "1", "-t", "3"))
    counts = Net::HTTP.start("127.0.0.1", server.port) do |http|
      Array.new(1000) do
        5.times { http.get("/file.txt") }
        http.get("/").body.split.map(&:to_i)
      end
    end
    all = counts.last.last - counts.first.first
    within = counts.sum { |before, after| after - before }
    assert_operator all, :>, 5
    assert_operator within * 2, :<, all, "#{within} of #{all} major collections were made within a request"
  end

  # Pages of the mold that its workers still share after the first requests.
  def test_workers_share_what_was_loaded
    app "LOADED = Array.new(400_000) { |i| [i.to_s * 3] }\nrun(proc { |_env| 2000.times { 'y' * 50 }; GC.start; [200, {}, [LOADED.size.to_s]] })"
    server = start(*production("-w", "2", "-t", "1"))
    eventually { pool(server)["slots"]["total"] == 2 }
    20.times { assert_equal "400000", get(server, "/").body }
    private_kb = workers(server).map { |pid| File.read("/proc/#{pid}/smaps_rollup")[/^Private_Dirty:\s+(\d+)/, 1].to_i }
    mold_kb = File.read("/proc/#{processes(server, "mold").first}/smaps_rollup")[/^Rss:\s+(\d+)/, 1].to_i
    private_kb.each { |kb| assert_operator kb, :<, mold_kb / 3 * memory_factor, "#{private_kb} of #{mold_kb}" }
  end
end
