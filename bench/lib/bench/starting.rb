# frozen_string_literal: true

require "bench/working"

module Bench
  # A worker that is idle, and jobs that come one by one.
  module Starting
    # Seconds before each job.
    PAUSE = 0.01
    # Pages that a commit of one job writes, and their size in the file.
    PAGES = 6
    PAGE_BYTES = 4_120
    # SQLite begins anew at the front of its log after as much.
    LOG_BYTES = 4 << 20

    module_function

    # The region: from the first job to the end of the idle time. Returns the proof.
    #
    # @param idle [Float] seconds
    # @param store [JobsFile, RedisServer]
    def measure(meter, jobs, idle, store, backend)
      return if jobs.zero? # a worker is a process of its own, which nothing here warms up

      working = Working.new(meter, :ringspun, 1_000, ["each"], backend:, store:)
      Ringspun.run do
        store.is_a?(JobsFile) ? Jobs::Ringspun.connect_to(store) : Jobs::Ringspun.connect(store)
        working.run do
          began = start_one(meter, working)
          jobs.times { start_one(meter, working) }
          take(meter, idle, began)
          note(meter, start_one(meter, working)[:noted].drop(1))
          working.finish
        end
      end
    end

    # The floor: as many bytes, in a file that the system holds or on the disk.
    def write(meter, jobs, durable)
      bytes = "x" * (PAGES * PAGE_BYTES)
      File.open(File.join(meter.scratch, "log"), "w") do |file|
        times = Array.new([jobs, 1].max) do
          sleep(PAUSE)
          began = meter.now
          file.rewind if file.pos > LOG_BYTES
          file.syswrite(bytes)
          file.fdatasync if durable
          meter.now - began
        end
        meter.take(user: 0.0, system: 0.0, real: times.sum)
        note(meter, times)
      end
    end

    # Returns what the worker has said of it.
    def start_one(meter, working)
      sleep(PAUSE)
      StartJob.perform_async(meter.now)
      working.news
    end

    def take(meter, idle, began)
      pid = began.fetch(:pid)
      before = cpu_seconds(pid)
      sleep(idle)
      meter.note(:idle_cpu, (cpu_seconds(pid) - before) / idle)
      spent = cpu_seconds(pid)
      meter.take(user: spent - began[:user] - began[:system], system: 0.0, real: meter.now - began[:clock])
    end

    def note(meter, times)
      times = times.sort
      meter.note(:p50, times[times.size / 2])
      meter.note(:p99, times[times.size * 99 / 100])
    end

    # Of all threads that live, in nanoseconds, for `stat` has ticks of 10 ms:
    # https://docs.kernel.org/scheduler/sched-stats.html
    def cpu_seconds(pid) = Dir["/proc/#{pid}/task/*/schedstat"].sum { |path| File.read(path).to_i } / 1e9
    private_class_method :start_one, :take, :note, :cpu_seconds
  end
end
