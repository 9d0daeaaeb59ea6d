# frozen_string_literal: true

require "json"

module Bench
  module Jobs
    # Counts jobs in the worker of any library, which the jobs call. At the moments in BENCH_MOMENTS, such as "begun 1,done 2000",
    # or at "each" end, it writes the clocks into the pipe BENCH_TALLY, and with BENCH_WEIGH the memory of the process.
    module Tally
      @moments = ENV.fetch("BENCH_MOMENTS", "").split(",")
      EACH = @moments == ["each"]
      private_constant :EACH

      @pipe = ENV.fetch("BENCH_TALLY", nil)
      @begun = @done = 0

      class << self
        # Threads may call it at once: each gets a number of its own, for no thread switches between the addition and its value.
        def begun
          number = (@begun += 1)
          tell("begun #{number}") if of_interest.include?(number)
        end

        def done
          number = (@done += 1)
          tell("done #{number}") if EACH || of_interest.include?(number)
        end

        # Keeps a number for the next report.
        def note(number) = (@noted ||= []) << number

        private

        # So that all other jobs pay only for a look-up.
        def of_interest = @of_interest ||= @moments.to_h { |moment| [moment[/\d+/].to_i, true] }

        def tell(moment)
          return unless EACH || @moments.include?(moment)

          spent = Process.times
          news = { moment:, pid: Process.pid, clock: Process.clock_gettime(Process::CLOCK_MONOTONIC), user: spent.utime,
                   system: spent.stime }
          news[:noted] = @noted if @noted
          news[:rss] = resident_bytes if ENV["BENCH_WEIGH"]
          pipe.syswrite("#{JSON.generate(news)}\n")
        end

        def pipe = @opened ||= File.open(@pipe, "a")

        def resident_bytes
          GC.start
          Integer(File.read("/proc/self/smaps_rollup")[/^Rss:\s+(\d+) kB/, 1]) * 1024
        end
      end
    end
  end
end
