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

# Waits until its process ends.
class SleepJob
  include JOB

  def perform
    Bench::Jobs::Tally.begun
    sleep
  end
end
