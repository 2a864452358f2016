# frozen_string_literal: true

# All small applications behind one look-up, so that a peer is started once a round.

TEXT = "text/plain"
SLOW_ONE_IN = 50
SLOW_S = 0.1
QUICK_S = 0.001

answer = ->(body) { [200, { "content-type" => TEXT, "content-length" => body.bytesize.to_s }, [body]] }

echo = lambda do |env|
  size = 0
  while (part = env["rack.input"]&.read(65_536))
    size += part.bytesize
  end
  answer.(size.to_s)
end

# 2 ms of this thread's processor time.
burn = lambda do |_env|
  clock = Process::CLOCK_THREAD_CPUTIME_ID
  deadline = Process.clock_gettime(clock) + 0.002
  nil while Process.clock_gettime(clock) < deadline
  answer.("OK")
end

# Every fiftieth request of a worker is slow, so that all peers get the same work.
asked = 0
mixed = lambda do |_env|
  sleep((asked += 1) % SLOW_ONE_IN == 0 ? SLOW_S : QUICK_S)
  answer.("OK")
end

APPS = { "/pulse" => ->(_env) { answer.("OK") }, "/echo" => echo, "/cpu2" => burn, "/mixed" => mixed }.freeze
NOTHING = [404, { "content-type" => TEXT, "content-length" => "0" }, []].freeze

run ->(env) { (app = APPS[env["PATH_INFO"]]) ? app.call(env) : NOTHING }
