# frozen_string_literal: true

require "bench/callers"
require "bench/redis_server"

module Bench
  # Callers which enqueue one job after the other into a private Redis, or into a file. All enqueue HardJob, which bench/jobs
  # defines for each library, with arguments that make an entry of 217 bytes in its form.
  class Enqueuing
    BYTES = 217

    # A time with fewer digits makes an entry a little shorter.
    NEARLY = (BYTES - 4..BYTES + 4)

    # @param store [RedisServer, JobsFile]
    # @param start (see Callers#initialize)
    # @param finish (see Callers#initialize)
    def initialize(store, start, finish)
      @store = store
      @callers = Callers.new(start, finish)
      @store.empty
    end

    # The time of each call in nanoseconds, if the region was `timed`.
    attr_reader :times

    # The region: so many callers for so long, each with one call after the other. Returns the proof.
    def measure(meter, callers:, seconds:, bulk: 1, timed: false)
      arguments = fitting_arguments
      all = Array.new(bulk, arguments)
      @times = []
      call = bulk == 1 ? -> { HardJob.perform_async(*arguments) } : -> { HardJob.perform_bulk(all) }
      calls = meter.measure { @callers.run(callers, seconds, timed ? -> { @times << nanoseconds(&call) } : call) }
      meter.note(:p99, @times.sort![@times.size * 99 / 100] / 1e9) if timed
      meter.operations = calls * bulk
      proof(calls * bulk)
    end

    # Arguments that make an entry of the promised size, found by enqueuing one.
    def fitting_arguments(text = "")
      arguments = [1_021, text, { "urgent" => true }]
      return arguments unless text.empty?

      HardJob.perform_async(*arguments)
      text = "u" * (BYTES - entry_bytes)
      @store.empty
      fitting_arguments(text)
    end

    # Whether everything that was enqueued is there, and of the promised size.
    def proof(count)
      raise "an entry has #{entry_bytes} bytes" unless NEARLY.cover?(entry_bytes)

      { lost: count - @store.waiting }.tap { @store.empty }
    end

    private

    def entry_bytes = @store.entry.bytesize

    def nanoseconds
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      yield
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - began
    end
  end
end
