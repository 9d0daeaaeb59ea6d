# frozen_string_literal: true

require "bench/computing"
require "bench/jobs/tally"

# The jobs of the tables, for the library whose module is JOB.

# Does nothing.
class HardJob
  include JOB

  def perform(*) = Bench::Jobs::Tally.done
end

# Asks a server that answers late.
class CallJob
  include JOB

  def perform(port)
    Bench::Jobs::Tally.begun
    raise "a wrong answer" unless Net::HTTP.get("127.0.0.1", "/", port) == "hello"

    Bench::Jobs::Tally.done
  end
end

# Needs a processor.
class ComputeJob
  include JOB

  def perform
    raise "a wrong result" unless Bench::Computing.once == Bench::Computing::RESULT

    Bench::Jobs::Tally.done
  end
end

# Fails once, notes how much later than it has asked for it is tried again, and enqueues the next of so many.
class LateJob
  include JOB
  SECONDS = 0.2
  retry_in { SECONDS } if respond_to?(:retry_in)
  singleton_class.attr_accessor :failed_at

  def perform(left)
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    unless LateJob.failed_at
      LateJob.failed_at = now
      raise "not yet"
    end

    Bench::Jobs::Tally.note(now - LateJob.failed_at - SECONDS)
    LateJob.failed_at = nil
    LateJob.perform_async(left - 1) if left > 1
    Bench::Jobs::Tally.done
  end
end

# Notes how long ago it was enqueued, by the clock that all processes of a host have.
class StartJob
  include JOB

  def perform(enqueued_at)
    Bench::Jobs::Tally.note(Process.clock_gettime(Process::CLOCK_MONOTONIC) - enqueued_at)
    Bench::Jobs::Tally.done
  end
end

# Waits until its process ends.
class SleepJob
  include JOB

  def perform
    Bench::Jobs::Tally.begun
    sleep
  end
end
