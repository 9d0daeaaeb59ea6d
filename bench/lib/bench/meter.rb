# frozen_string_literal: true

require "tmpdir"

module Bench
  # Measures, in the child. A contender prepares its work, then calls `measure` exactly once around the region that counts.
  class Meter
    attr_reader :reading, :notes
    attr_writer :operations

    # `counters` has a method `during` for the region, if it is counted.
    def initialize(counters: nil)
      @counters = counters
      @notes = {}
    end

    # Every contender starts the region with a collected heap; what it allocates inside is its own cost.
    #
    # A region too short for the clocks is run `rounds` times: the block gets the number of the round, and the reading is that of
    # one round.
    def measure(rounds: 1)
      raise "measure called twice" if @reading

      GC.start
      cpu = Process.times
      clock = now
      value = nil
      counted { rounds.times { |round| value = yield round } }
      real = now - clock
      spent = Process.times
      @reading = { user: spent.utime - cpu.utime, system: spent.stime - cpu.stime, real: }
                 .transform_values { |seconds| seconds / rounds }
      value
    end

    # Takes a reading instead of `measure`, for work that another program has done and measured.
    def take(user:, system:, real:)
      raise "measure called twice" if @reading

      @reading = { user:, system:, real: }
    end

    # For a column beside the reading: the region as in a program, garbage collections included.
    def time_with_gc
      GC.start
      clock = now
      yield.tap { note(:gc_real, now - clock) }
    end

    # `measure` without the collector; also counts the objects that are made.
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

    # A directory for files, if possible not on a memory filesystem; the parent removes it. Each meter has its own, because a
    # filesystem may treat a file of the warm-up unlike a new one: ext4 flushes a truncated file when it is closed, see
    # auto_da_alloc in https://docs.kernel.org/admin-guide/ext4.html
    def scratch = @scratch ||= Dir.mktmpdir(nil, ENV.fetch("BENCH_SCRATCH"))

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Mappings of this process. Each fiber's stack takes two, and the kernel allows vm.max_map_count of them:
    # https://docs.kernel.org/admin-guide/sysctl/vm.html#max-map-count
    def mappings = File.foreach("/proc/self/maps").count

    # Bytes that were read from block devices for this process so far; nil where the kernel does not count them:
    # https://man7.org/linux/man-pages/man5/proc_pid_io.5.html
    def bytes_fetched
      File.read("/proc/self/io")[/^read_bytes: (\d+)/, 1]&.to_i
    rescue SystemCallError
      nil
    end

    # By how many bytes the process grew at most in the block, which begins with a collected heap.
    def growth_at_most
      before = resident_bytes
      File.write("/proc/self/clear_refs", "5") # resets the peak: https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html
      yield
      Integer(File.read("/proc/self/status")[/^VmHWM:\s+(\d+) kB/, 1]) * 1024 - before
    end

    # Resident bytes. smaps_rollup is exact; VmRSS may be off by some pages per thread:
    # https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
    def resident_bytes
      GC.start
      rollup = File.read("/proc/self/smaps_rollup")
      Integer(rollup[/^Rss:\s+(\d+) kB/, 1]) * 1024
    end

    private

    def counted(&) = @counters ? @counters.during(&) : yield
  end
end
