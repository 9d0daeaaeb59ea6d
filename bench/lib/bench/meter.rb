# frozen_string_literal: true

require "tmpdir"

module Bench
  # Lives in the child. A contender prepares its work, then calls `measure` exactly once around the region that
  # counts.
  class Meter
    attr_reader :reading, :notes
    attr_writer :operations

    def initialize
      @notes = {}
    end

    # Every contender starts the region with a collected heap; what it allocates within is its own cost.
    #
    # A scenario too short for the clocks is run `rounds` times; the block gets the number of the round, and the
    # reading is that of one.
    def measure(rounds: 1)
      raise "measure called twice" if @reading

      GC.start
      cpu = Process.times
      clock = now
      value = nil
      rounds.times { |round| value = yield round }
      real = now - clock
      spent = Process.times
      @reading = { user: spent.utime - cpu.utime, system: spent.stime - cpu.stime, real: }
                 .transform_values { |seconds| seconds / rounds }
      value
    end

    # A reading in place of `measure`, for what another program has done and counted.
    def take(user:, system:, real:)
      raise "measure called twice" if @reading

      @reading = { user:, system:, real: }
    end

    # For a column beside the reading: the region as it is in a program, with what the collector takes.
    def time_with_gc
      GC.start
      clock = now
      yield.tap { note(:gc_real, now - clock) }
    end

    # `measure` without the collector, and the objects that were made meanwhile.
    def measure_without_gc(&)
      GC.disable
      allocated = GC.stat(:total_allocated_objects)
      measure(&).tap { note(:allocated, GC.stat(:total_allocated_objects) - allocated) }
    ensure
      GC.enable
    end

    # For a table that reports per operation.
    attr_reader :operations

    # A number of the table's own, for a column or a target.
    def note(name, value)
      @notes[name] = value
    end

    # A directory for files, on a filesystem that is a real one where there is any; removed by the parent. Each
    # meter has its own, because a file system may treat a file that the warm-up has left unlike a new one: ext4
    # flushes a file which was truncated when it is closed.
    def scratch = @scratch ||= Dir.mktmpdir(nil, ENV.fetch("BENCH_SCRATCH"))

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Mappings of this process. Each fiber stack costs two, and the kernel allows vm.max_map_count of them.
    def mappings = File.foreach("/proc/self/maps").count

    # What the block layer had to fetch for this process so far; nil where the kernel does not count it.
    def bytes_fetched
      File.read("/proc/self/io")[/^read_bytes: (\d+)/, 1]&.to_i
    rescue SystemCallError
      nil
    end

    # By how many bytes the region grew at most, with garbage that was there before collected.
    def growth_at_most
      before = resident_bytes
      File.write("/proc/self/clear_refs", "5") # the mark begins anew: proc_pid_clear_refs(5)
      yield
      Integer(File.read("/proc/self/status")[/^VmHWM:\s+(\d+) kB/, 1]) * 1024 - before
    end

    # Resident bytes. The roll-up is exact; VmRSS may be off by some pages per thread.
    def resident_bytes
      GC.start
      rollup = File.read("/proc/self/smaps_rollup")
      Integer(rollup[/^Rss:\s+(\d+) kB/, 1]) * 1024
    end
  end
end
