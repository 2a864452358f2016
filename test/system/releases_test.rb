# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# A deploy moves `current` from one release to the next: pages of the former one are still on screens, and
# in the hands of its last workers, and their files are found as long as these live.
class ReleasesTest < ServerCase
  APP = <<~'RUBY'
    run(proc { |env|
      case env["PATH_INFO"]
      when "/wait" then sleep 0.02 until File.exist?(File.expand_path("../../gate", __dir__))
      end
      [200, {"content-type" => "text/plain"}, ["application of #{__dir__[/\d+\z/]}"]]
    })
  RUBY

  def setup
    super
    release 1, "one.css" => "one", "both.css" => "both of 1", "page.html" => "page of 1", "index.html" => "index of 1"
    release 2, "two.css" => "two", "both.css" => "both of 2"
    @current = File.join(@dir, "current")
    File.symlink("releases/1", @current)
  end

  def release(number, files)
    write "releases/#{number}/config.ru", APP
    files.each { |name, text| write("releases/#{number}/public/#{name}", text) }
  end

  def point_at(number)
    File.symlink("releases/#{number}", "#{@current}.new")
    File.rename("#{@current}.new", @current)
  end

  def body(path) = get(@server, path).body

  def start_with_a_request_that_waits
    @server = start("-e", "production", "-w", "1", "-t", "2", @current)
    @waiting = TCPSocket.new("127.0.0.1", @server.port)
    @waiting.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
    eventually { pool(@server)["slots"]["busy"] == 1 }
  end

  def test_files_of_the_former_release_are_served_while_its_workers_live
    start_with_a_request_that_waits
    point_at(2)
    assert_equal ["one", "both of 2", "two"], %w[/one.css /both.css /two.css].map { |path| body(path) }, "before the restart"
    Process.kill("USR1", @server.pid)
    eventually { body("/") == "application of 2" }
    20.times { assert_equal ["one", "both of 2", "two"], %w[/one.css /both.css /two.css].map { |path| body(path) } }
    assert_equal %w[one 3], get(@server, "/one.css").then { |answer| [answer.body, answer["content-length"]] }
    assert_equal "206", get(@server, "/one.css", "Range" => "bytes=0-0").code
    assert_equal ["application of 2"] * 3, %w[/page /nothing.css /].map { |path| body(path) }, "no cached page of the former release"
    write("gate", "")
    assert_equal "application of 1", read_reply(@waiting).body
    eventually(10, "the last worker of release 1 is gone") { body("/one.css") == "application of 2" }
    assert_equal ["both of 2", "two"], [body("/both.css"), body("/two.css")]
  ensure
    @waiting&.close
  end

  # Nobody ever sees a mixture, or a file of before a swap that was over when they asked.
  def test_every_request_after_a_swap_has_the_new_file
    [1, 2].each { |number| write("releases/#{number}/public/v.txt", number.to_s * 50_000) }
    @server = start("-e", "production", "-w", "1", @current)
    shown, crowd_ends = [], false
    crowd = Array.new(3) { Thread.new { shown << body("/v.txt") until crowd_ends } }
    200.times do |round|
      point_at(number = 1 + (round % 2 ^ 1))
      assert_equal number.to_s * 50_000, body("/v.txt"), "round #{round}"
    end
    crowd_ends = true
    crowd.each(&:join)
    assert_empty shown.uniq - ["1" * 50_000, "2" * 50_000]
    refute_empty shown
  ensure
    crowd_ends = true
  end

  def test_a_new_front_knows_of_them_and_a_release_that_was_removed_is_no_error
    start_with_a_request_that_waits
    point_at(2)
    Process.kill("USR1", @server.pid)
    eventually { body("/") == "application of 2" }
    front = processes(@server, "front").first
    Process.kill("KILL", front)
    eventually { (processes(@server, "front") - [front]).any? && (body("/") rescue nil) == "application of 2" }
    assert_equal "one", body("/one.css")
    FileUtils.rm_rf(File.join(@dir, "releases/1"))
    assert_equal "application of 2", body("/one.css")
    assert_equal "two", body("/two.css")
  ensure
    write("gate", "")
    @waiting&.close
  end

  def test_a_way_out_of_a_former_release_is_none
    write("secret/key.txt", "secret")
    File.symlink("../../../secret/key.txt", File.join(@dir, "releases/1/public/key.txt"))
    start_with_a_request_that_waits
    point_at(2)
    Process.kill("USR1", @server.pid)
    eventually { body("/") == "application of 2" }
    assert_equal "404", get(@server, "/key.txt").code
    write("shared/logo.txt", "logo")
    File.symlink("../../../shared/logo.txt", File.join(@dir, "releases/1/public/logo.txt"))
    assert_equal "logo", body("/logo.txt")
  ensure
    write("gate", "")
    @waiting&.close
  end
end
