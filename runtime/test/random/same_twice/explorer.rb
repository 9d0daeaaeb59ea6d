# frozen_string_literal: true

require "support/patience"
require "support/shrink"

class SameTwice
  # Runs programs in child processes, for one that hangs takes its process along, and makes one that fails smaller.
  class Explorer
    # As many run beside each other. Most of the time they all wait for a limit that is to pass.
    CHILDREN = 6
    # For one program, which takes a tenth of a second.
    SECONDS_MAX = 30
    SHRINK_SECONDS_MAX = 5
    SHRINK_TRIES = 60

    # @param expected [ExpectedFailures]
    def initialize(expected, seconds_max: SECONDS_MAX)
      @expected = expected
      @seconds_max = seconds_max
    end

    # @param programs [Array<Program>]
    # @return [Array<String>] one for each program that fails in a way that is not expected
    def failures(programs)
      chunks = programs.group_by(&:core_ext?).values
                       .flat_map { |some| some.each_slice([some.size.fdiv(CHILDREN / 2).ceil, 1].max).to_a }
      readers = chunks.map { |chunk| begin_child(chunk, @seconds_max) }
      readers.map { |reader, pid| Thread.new { results(reader, pid, @seconds_max) } }.flat_map(&:value)
             .filter_map { |index_and_told| unexpected(programs, *index_and_told) }
    end

    # The program, with fewer steps, that fails as well.
    def smallest(program)
      fails = lambda do |steps|
        smaller = program.with(steps:)
        told = results(*begin_child([smaller], SHRINK_SECONDS_MAX), SHRINK_SECONDS_MAX).flat_map(&:last)
        told.any? { |each| !@expected.known?(each) }
      end
      steps = Shrink.smallest(program.steps, tries: SHRINK_TRIES, &fails)
      while (opened = opened(steps)) && fails.call(opened)
        steps = Shrink.smallest(opened, tries: SHRINK_TRIES, &fails)
      end
      program.with(steps:)
    end

    private

    # The steps with those that stood within the first scope in its place.
    def opened(steps)
      at = steps.index { |_, step| !step.body.empty? }
      at && steps[0...at] + steps[at].last.body.map { |step| [steps[at].first, step] } + steps[(at + 1)..]
    end

    def unexpected(programs, seed, told)
      unknown = told.reject { |each| @expected.known?(each) }
      return if unknown.empty?

      program = programs.find { |each| each.seed == seed }
      "seed #{seed}, #{program.world.name}#{" with core_ext" if program.core_ext?}:\n#{unknown.join("\n")}\n" \
        "RINGSPUN_SEED=#{seed} bin/test runtime/test/stock/same_twice_test.rb\n#{program}"
    end

    # --- a child ---

    def begin_child(programs, seconds_max)
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        require "ringspun/core_ext" if programs.first.core_ext?
        programs.each { |program| run_program(program, writer, seconds_max) }
        tell(writer, :end)
      rescue Exception => error
        tell(writer, :fails, error.full_message(highlight: false))
      ensure
        exit!(true)
      end
      writer.close
      [reader, pid]
    end

    def run_program(program, writer, seconds_max)
      tell(writer, :begin, program.seed)
      world = nil
      machine = Ringspun::Machine.current
      watching = Thread.new do
        Patience.new(seconds_max).until_true { |left| sleep(left) && nil }
        tell_stuck(writer, world, machine)
      end
      differences = program.differences { |each| world = each }
      watching.kill.join
      tell(writer, :differs, differences) unless differences.empty?
    end

    def tell_stuck(writer, world, machine)
      threads = Thread.list.map { |thread| [thread.inspect, *thread.backtrace].join("\n    ") }
      tell(writer, :differs, ["it hangs in #{world.name}:\n#{threads.join("\n")}\n#{machine.describe_strands}"])
    ensure
      exit!(false)
    end

    # One line, which no other process of these writes to that pipe.
    def tell(writer, *words) = writer.write([Marshal.dump(words)].pack("m0"), "\n")

    # @return [Array<Array(Integer, Array<String>)>] the seeds of those that differ, with how
    def results(reader, pid, seconds_max)
      told = []
      seed = nil
      loop do
        case hear(reader, seconds_max)
        in [:begin, Integer => seed] then Supervised.tick
        in [:differs, differences] then told << [seed, differences]
        in [:fails, message] then break told << [seed, [message]]
        in [:end] then break
        in nil
          told << [seed, ["the process has ended, or hangs and holds the GVL"]] unless told.any? { |each, _| each == seed }
          break
        end
      end
      told
    ensure
      reader.close
      end_child(pid)
    end

    # Longer than the child waits itself.
    def hear(reader, seconds_max)
      line = Patience.new(seconds_max * 2).until_true { |left| reader.wait_readable(left) } && reader.gets(chomp: true)
      line && Marshal.load(line.unpack1("m0"))
    end

    def end_child(pid)
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end
end
