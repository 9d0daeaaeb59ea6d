# frozen_string_literal: true

require "ruby-progressbar"

module Bench
  # A line on the terminal that says what runs and how long the rest will take. On anything else there is none: in a file it would
  # be noise.
  class Progress
    FORMAT = "%c/%C %e %B %t"
    private_constant :FORMAT

    # @param out [IO]
    # @param tables [Array<Table>] that will run
    # @param samples [Integer] of each contender
    def initialize(out, tables, samples)
      @counts = tables.to_h { |table| [table, table.samples(samples) * table.rows.size * table.contenders.size] }
      @done = 0
      @turn = Mutex.new # samples of --quick begin beside each other
      return unless out.tty?

      @bar = ProgressBar.create(output: out, total: [@counts.values.sum, 1].max, format: FORMAT, title: "", throttle_rate: 0)
    end

    # A sample begins.
    def step(what)
      return unless @bar

      @turn.synchronize do
        @bar.title = what
        @bar.increment unless @bar.finished?
      end
    end

    # The table is done, and will be printed: contenders that are missing took no step.
    def finish(table)
      @done += @counts.fetch(table)
      return unless @bar

      @bar.progress = @done
      @bar.clear
    end
  end
end
