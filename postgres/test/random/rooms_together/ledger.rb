# frozen_string_literal: true

module RoomsTogether
  # What the strands of a program have heard, and what it must come to.
  class Ledger
    attr_reader :trouble

    def initialize
      @jobs = []
      @rows = { stored: [], refused: [], unknown: [] }
      @trouble = []
    end

    # The storage has taken it.
    def accepted(*jids) = @jobs.concat(jids)

    # @param heard [Symbol] `stored`, `refused`, or `unknown` where it was cut off when it was about to be committed
    def row(id, heard) = @rows.fetch(heard) << id

    def expect(what, expected, actual)
      @trouble << "#{what}: #{actual.inspect}, and not #{expected.inspect}" unless expected == actual
    end

    def failed(error)
      @trouble << error.full_message(highlight: false, order: :top).lines.first(8).join
    end

    # @param runs [Hash{String => Integer}] how often each job has ended well
    def all_run?(runs) = @jobs.all? { |jid| runs.key?(jid) }

    # @param runs [Hash{String => Integer}]
    # @param rows [Array<Integer>] that are in the table
    def judge(runs, rows)
      told = @rows.values.flatten
      expect("rows that nobody has inserted", [], rows - told)
      expect("rows that were committed and are not there", [], @rows[:stored] - rows)
      expect("rows that were rolled back and are there", [], @rows[:refused] & rows)
      expect("jobs that have run twice", [], @jobs.select { |jid| runs.fetch(jid, 0) > 1 })
      @trouble
    end
  end
end
