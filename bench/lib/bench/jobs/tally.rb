# frozen_string_literal: true

require "json"

module Bench
  module Jobs
    # Lives in the worker, of whatever library, and is told by the jobs. At the moments that it was asked for it tells the bench
    # what the clocks say: BENCH_MOMENTS has them, as "begun 1,done 2000", and BENCH_TALLY is the pipe. With BENCH_WEIGH also what
    # the process weighs then.
    module Tally
      @moments = ENV.fetch("BENCH_MOMENTS", "").split(",")
      @pipe = ENV.fetch("BENCH_TALLY", nil)
      @begun = @done = 0

      class << self
        # Threads may do this at once: each gets a number of its own, as nothing switches between the sum and its value.
        def begun
          number = (@begun += 1)
          tell("begun #{number}") if of_interest.include?(number)
        end

        def done
          number = (@done += 1)
          tell("done #{number}") if of_interest.include?(number)
        end

        private

        # So that a job that is none of them pays for nothing but looking.
        def of_interest = @of_interest ||= @moments.to_h { |moment| [moment[/\d+/].to_i, true] }

        def tell(moment)
          return unless @moments.include?(moment)

          spent = Process.times
          news = { moment:, clock: Process.clock_gettime(Process::CLOCK_MONOTONIC), user: spent.utime, system: spent.stime }
          news[:rss] = resident_bytes if ENV["BENCH_WEIGH"]
          File.write(@pipe, "#{JSON.generate(news)}\n", mode: "a")
        end

        def resident_bytes
          GC.start
          Integer(File.read("/proc/self/smaps_rollup")[/^Rss:\s+(\d+) kB/, 1]) * 1024
        end
      end
    end
  end
end
