# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"

# Whatever dies, in whatever order, under load: afterwards everything is as before.
class StormTest < ServerCase
  APP = <<~'RUBY'
    run(lambda do |env|
      text = {"content-type" => "text/plain"}
      case env["PATH_INFO"]
      when "/body" then [200, text, [env["rack.input"].read.bytesize.to_s]]
      when "/stream" then [200, text, Enumerator.new { |list| 10.times { list << "s" * 20_000 } }]
      when "/big" then [200, text, ["b" * 500_000]]
      else [200, text, ["ok"]]
      end
    end)
  RUBY
  KILLS = 10

  def one(server, kind)
    case kind
    when 0 then http(server, "/body", method: "POST", body: "x" * 300_000)
    when 1 then get(server, "/stream")
    when 2 then get(server, "/big")
    else get(server, "/")
    end
    :answered
  rescue SystemCallError, IOError, Timeout::Error, Net::ProtocolError => error
    error.class
  end

  def counts(server)
    { files: Dir.children("/proc/#{server.pid}/fd").size, front: processes(server, "front").sum { |pid| Dir.children("/proc/#{pid}/fd").size },
      children: children_of(server.pid).size }
  end

  def test_after_a_storm_of_deaths_all_is_as_before
    app APP
    config "loops: 3\n"
    server = start("-e", "production", "-w", "2", "-t", "2")
    16.times { |number| one(server, number % 4) }
    before = counts(server)
    random = Random.new(Minitest.seed.to_i)
    running, answered = true, Thread::Queue.new
    clients = Array.new(6) { |number| Thread.new { answered << one(server, number % 4) while running } }
    KILLS.times { strike(server, random, answered) }
    running = false
    clients.each(&:join)
    assert_operator Array.new(answered.size) { answered.pop }.count(:answered), :>, KILLS * 10
    # A worker thread keeps the connection over which it asked for a large body.
    before[:front] += 4
    eventually(20, "all is as before") { whole?(server) && counts(server).all? { |what, count| count <= before[what] } }
    20.times { assert_equal :answered, one(server, random.rand(4)) }
    assert_equal 0, stop(server)
  end

  # Kills one of front, mold and workers after some answers; a front more seldom, for it comes back ever later.
  def strike(server, random, answered)
    goal = answered.size + 30
    eventually(15, "requests are answered") { answered.size >= goal }
    role = %w[worker worker worker mold mold front][random.rand(6)]
    pid = processes(server, role).sample(random: random)
    Process.kill("KILL", pid) if pid
  rescue Errno::ESRCH
    nil
  end

  def whole?(server)
    seen = pool(server)
    workers(server).size == 2 && seen["slots"]["busy"].zero? && seen["queue"]["length"].zero? && seen["state"] == "up"
  end
end
