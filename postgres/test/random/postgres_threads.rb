# frozen_string_literal: true

require "ringspun/postgres"
require "timeout"

# Random programs of plain threads that come and go, share a pool and ask it, while others are killed, raised in, late or slow.
#
# Each answer belongs to its question: who asks for a number or for rows gets that number, and these rows. A thread ends by
# itself, or by what was done to it. When all have ended, nothing is left of them on the connections or on the server.
class PostgresThreads
  Raised = Class.new(RuntimeError)

  # @!attribute steps
  #   @return [Array<Array>] a verb and its arguments, one after the other
  # @!attribute starts
  #   @return [Integer] after which of the program's steps it begins
  # @!attribute ends
  #   @return [Array(Integer, Symbol), nil] after which of the program's steps something is done to it, and what
  Caller = Data.define(:steps, :starts, :ends) do
    def to_s
      lines = ["from step #{starts} on", ends && "#{ends.last} after step #{ends.first}"]
      [*lines.compact, *steps.map { |step| step.join(" ") }].join("\n    ")
    end
  end

  # @!attribute lossy
  #   @return [Boolean] whether connections end
  Program = Data.define(:callers, :options, :lossy) do
    def to_s = [options.inspect, *callers.each_with_index.map { |caller, index| "caller #{index}: #{caller}" }].join("\n  ")
  end

  # Draws a program.
  class Draw
    VERBS = %i[ask ask ask ask slow late timed_out refused locked rows wide transaction collect].freeze

    def initialize(random) = @random = random

    def program
      @lossy = chance(0.2)
      options = { lanes: @random.rand(1..2), max: @random.rand(1..4) }
      Program.new(callers: Array.new(@random.rand(1..6)) { |index| caller_at(index) }, options:, lossy: @lossy)
    end

    private

    def chance(probability) = @random.rand < probability

    def caller_at(index)
      ends = [@random.rand(1..12), %i[raise kill].sample(random: @random)] if chance(0.4)
      Caller.new(steps: Array.new(@random.rand(1..8)) { step }, starts: index.zero? ? 0 : @random.rand(4), ends:)
    end

    def step
      return [:cut] if @lossy && chance(0.1)

      [VERBS.sample(random: @random), @random.rand(1..100_000)]
    end
  end

  # Runs programs on a server.
  class Run
    NUMBER = "select $1::int"
    SLEEP = "select $1::int from pg_sleep($2::float8)"
    KNOWN = [NUMBER, SLEEP].freeze
    LIMIT = 120

    # @param pool [Ringspun::Postgres::Pool]
    def initialize(pool, program)
      @pool = pool
      @program = program
      @events = Thread::Queue.new
      @mutex = Thread::Mutex.new
      @wrong = Thread::Queue.new
    end

    # @return [String, nil] what is wrong
    def call
      KNOWN.product([0] * 40) { |sql, seconds| @pool.config.sharing.histories.note(sql, seconds) }
      threads = run_callers
      threads.each_with_index { |thread, index| judge_end(thread, index) }
      judge_rest
      @wrong.pop unless @wrong.empty?
    end

    private

    # Each step of a caller is an event, and its end.
    def run_callers
      threads = Array.new(@program.callers.size)
      ended = steps = 0
      until ended == threads.size
        begin_and_end(threads, steps, forced: ended == threads.compact.size)
        event = @events.pop(timeout: LIMIT) or return threads.compact.tap { @wrong << "does not end" }
        event == :ended ? ended += 1 : steps += 1
      end
      threads
    end

    # @param forced [Boolean] whether nobody else brings the program on
    def begin_and_end(threads, steps, forced:)
      @program.callers.each_with_index do |caller, index|
        if threads[index].nil? && (caller.starts <= steps || forced)
          threads[index] = begin_caller(caller)
          forced = false
        end
        after, way = caller.ends
        end_caller(threads[index], way) if after == steps && threads[index]
      end
    end

    # Whatever is done to it, its end is an event: it has the mask of its maker.
    def begin_caller(caller)
      Thread.handle_interrupt(Object => :never) { Thread.new { run(caller) } }.tap { |thread| thread.report_on_exception = false }
    end

    def run(caller)
      Thread.handle_interrupt(Object => :immediate) { take_steps(caller.steps) }
    ensure
      @events << :ended
    end

    def take_steps(steps)
      steps.each do |verb, *with|
        __send__(verb, *with)
        @events << :step
      end
      :done
    end

    def end_caller(thread, way) = way == :kill ? thread.kill : thread.raise(Raised)

    def judge_end(thread, index)
      return @wrong << "caller #{index} has not ended" unless thread.join(LIMIT)

      value = thread.value
      @wrong << "caller #{index} has ended by #{value.inspect}" if value != :done && @program.callers[index].ends&.last != :kill
    rescue Raised
      nil
    rescue Ringspun::Postgres::ConnectionLost => error
      @wrong << "caller #{index}: #{error.message}" unless @program.lossy
    rescue StandardError => error
      @wrong << "caller #{index}: #{error.full_message(highlight: false)}"
    end

    # What the server was at for those that have left is cancelled, and whoever comes next gets its own answer.
    def judge_rest
      Array.new(3) { |number| Thread.new { answer(number, ask_at_last(number)) } }.each(&:join)
    end

    # A cut may have ended all connections, and `idempotent: true` sends a statement once more only.
    def ask_at_last(number, losses = @program.lossy ? @pool.config.max : 0)
      @pool.query_value(NUMBER, number, idempotent: true)
    rescue Ringspun::Postgres::ConnectionLost
      losses.positive? ? ask_at_last(number, losses - 1) : raise
    end

    def answer(number, got) = (@wrong << "asked for #{number}, got #{got.inspect}" if got != number)

    # --- verbs ---

    def ask(number) = answer(number, @pool.query_value(NUMBER, number))

    def slow(number) = answer(number, @pool.query_value(SLEEP, number, number % 8 / 1000.0))

    def late(number)
      answer(number, @pool.query_value(SLEEP, number, number % 8 / 1000.0, timeout: number % 5 / 1000.0))
    rescue Ringspun::TimeoutError
      nil
    end

    def timed_out(number)
      answer(number, Timeout.timeout((number % 5 / 1000.0) + 0.0001) { @pool.query_value(SLEEP, number, number % 8 / 1000.0) })
    rescue Timeout::Error
      nil
    end

    def refused(number)
      @pool.query_value("select $1::int / 0", number)
      @wrong << "divided by 0"
    rescue Ringspun::Postgres::ServerError => error
      @wrong << "another's error: #{error.message}" unless error.sqlstate == "22012"
    end

    def locked(number) = @mutex.synchronize { ask(number) }

    def rows(number)
      got = @pool.query("select $1::int + n from generate_series(1, $2::int) n", number, number % 300).rows.flatten
      @wrong << "other rows than those of #{number}" if got != Array.new(number % 300) { |n| number + n + 1 }
    end

    def wide(number)
      got = @pool.query_value("select $1::int || repeat('x', $2::int)", number, number)
      @wrong << "another text than that of #{number}" if got != "#{number}#{"x" * number}"
    end

    def transaction(number) = @pool.transaction { |t| 2.times { answer(number, t.query_value(NUMBER, number)) } }

    def collect(number) = number % 10 == 1 ? GC.compact : GC.start(full_mark: number.odd?)

    def cut
      @pool.query("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = " \
                  "current_setting('application_name') and backend_type = 'client backend'")
    end
  end
end
