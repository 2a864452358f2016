# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require_relative "../server_case"
require "time"

# The wall clock jumps, for every process of the server at once: a library put before all others adds what
# stands in a file to what the system says. Deadlines do not notice; dates follow.
class ClockTest < ServerCase
  LIBRARY = <<~'C'
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/time.h>
    #include <time.h>

    static long shift(void)
    {
        FILE *file = fopen(getenv("CLOCK_SHIFT"), "r");
        long seconds = 0;

        if (file) {
            if (fscanf(file, "%ld", &seconds) != 1)
                seconds = 0;
            fclose(file);
        }
        return seconds;
    }

    int clock_gettime(clockid_t clock, struct timespec *time)
    {
        static int (*real)(clockid_t, struct timespec *);

        if (!real)
            real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        if (real(clock, time) == -1)
            return -1;
        if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
            time->tv_sec += shift();
        return 0;
    }

    time_t time(time_t *ret_time)
    {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        if (ret_time)
            *ret_time = now.tv_sec;
        return now.tv_sec;
    }

    int gettimeofday(struct timeval *now, void *zone)
    {
        struct timespec time;

        (void)zone;
        clock_gettime(CLOCK_REALTIME, &time);
        *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
        return 0;
    }
  C

  YEAR = 365 * 86_400
  JUMPS = { "an hour on" => 3600, "an hour back" => -3600, "thirty years on" => 30 * YEAR, "before 1970" => -60 * YEAR, "as it was" => 0 }.freeze

  def setup
    super
    source = write("shift.c", LIBRARY)
    @library = File.join(@dir, "shift.so")
    assert system("gcc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", @library, source, "-ldl")
    @shift = write("shift", "0")
    app 'run(proc { |env| sleep(env["QUERY_STRING"].to_f); [200, {"content-type" => "text/plain"}, [Process.pid.to_s]] })'
    config "timeout: 3s\nqueue: {timeout: 4s}\ntimeouts: {header: 4s, keepalive: 6s}\n"
  end

  # At once for whoever reads it.
  def jump(seconds)
    write("shift.new", seconds.to_s)
    File.rename(File.join(@dir, "shift.new"), @shift)
  end

  where !BINARY.match?(%r{/[at]san/}), "a program without a sanitizer, which wants to be the first library" do
    def test_no_deadline_fires_and_none_is_lost_when_the_clock_jumps
      server = start("-e", "production", "-w", "2", "-t", "2", env: { "LD_PRELOAD" => @library, "CLOCK_SHIFT" => @shift })
      before = workers(server)
      with_witness(server, "/?0") do
        JUMPS.each do |name, seconds|
          asked = Array.new(3) { Thread.new { get(server, "/?0.8").code } }
          eventually { pool(server)["slots"]["busy"].positive? }
          jump(seconds)
          assert_equal ["200"] * 3, asked.map(&:value), name
        end
      end
      assert_equal before, workers(server)
      assert_equal 0, pool(server)["exits"].values.sum
      jump(-3600)
      assert_equal "504", get(server, "/?20").code
    end

    def test_dates_follow_the_clock
      server = start("-e", "production", "-w", "1", env: { "LD_PRELOAD" => @library, "CLOCK_SHIFT" => @shift })
      get(server, "/?0")
      [3600, -3600, 10 * YEAR].each do |seconds|
        jump(seconds)
        eventually(5, "the date follows") { (Time.httpdate(get(server, "/?0")["date"]) - (Time.now + seconds)).abs < 5 }
        Process.kill("HUP", server.pid)
        eventually(5, "and so do lines of the log") { server.output.lines.last[/\A\S+Z/]&.then { |text| (Time.iso8601(text) - (Time.now + seconds)).abs < 30 } }
      end
    end
  end
end
