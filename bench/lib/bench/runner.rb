# frozen_string_literal: true

module Bench
  # Runs a table: in each round every contender of every row once, in a new random order. So slow changes of the machine (its
  # clock rate, its neighbours) affect all contenders alike. The contenders of one row follow each other, for ratios are made of
  # them.
  class Runner
    # @param long_sample [Float, nil] seconds; a contender whose first sample takes longer has no other one
    # @param long_roles [Array<Symbol>, nil] of contenders that this is so for; nil: all
    # @param syscalls [Syscalls, nil] counts them, once for each contender of a row
    # @param at_once [Integer] samples that run beside each other, which then tell little more than that they work
    def initialize(samples:, quick:, seed:, at_once: 1, sampler: Sampler.new, syscalls: Syscalls.new, long_sample: nil,
                   long_roles: nil, progress: ->(_) {})
      @samples = samples
      @quick = quick
      @random = Random.new(seed)
      @sampler = sampler
      @syscalls = syscalls
      @progress = progress
      @at_once = at_once
      @long_sample = long_sample
      @long_roles = long_roles
    end

    def run(table)
      result = Result.new(table)
      table.samples(@samples).times do |round|
        each_of(turns(result), table.counts_server? ? 1 : @at_once) { |row, contender| take(table, row, contender, round) }
      end
      result
    end

    private

    def turns(result)
      result.rows.shuffle(random: @random).flat_map do |row|
        result.table.contenders.shuffle(random: @random).map { |contender| [row, contender] }
      end
    end

    # Ends those that run when one raises, or somebody interrupts it.
    def each_of(turns, at_once, &)
      return turns.each(&) if at_once == 1

      left = Thread::Queue.new(turns).close
      ended = Thread::Queue.new
      threads = []
      at_once.times { threads << Thread.new { ended << error_in { work(left, &) } } }
      threads.each { ended.pop&.then { |error| raise error } }
    ensure
      threads&.each(&:kill)&.each(&:join)
    end

    def work(left)
      while (turn = left.pop)
        yield(*turn)
      end
    end

    def error_in
      yield
      nil
    rescue Exception => error
      error
    end

    def take(table, row, contender, round)
      # A missing library is missing in every round, and one failure is enough.
      return if row.remark(contender) || long?(row, contender)

      @progress.call("#{table.name} #{row.label} #{contender.name}, round #{round + 1} of #{@samples}")
      reason = row.row.skipped[contender.declared_as]
      row.add(contender, reason ? { "unavailable" => reason } : sample(table, row, contender, round))
    end

    def long?(row, contender)
      return false if @long_sample.nil? || @long_roles&.include?(contender.role) == false

      row.samples(contender).any? { |sample| sample["real"].to_f > @long_sample }
    end

    def sample(table, row, contender, round)
      size = table.size_of(row.row, contender, quick: @quick)
      answer = @sampler.sample(table, contender, size)
      # The count of system calls hardly varies, and tracing is slow: once is enough, and too much for --quick.
      if table.syscalls && round.zero? && !@quick && @syscalls && answer.key?("real")
        answer["syscalls"] = @syscalls.per_operation(table, contender, size)
      end
      answer
    end
  end
end
