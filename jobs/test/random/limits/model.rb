# frozen_string_literal: true

module RandomLimits
  # What is true of processes that run jobs of a queue with a limit, whatever their storage believes: which runs there are, and
  # which of them are old, for others have taken over their jobs.
  class Model
    # `list`: the queue from which the job came, or the quarantine.
    Run = Struct.new(:fetched, :jid, :list, :begun, :old)

    # `state`: :alive; :frozen (does nothing); :cut (its runs go on and end, and it cannot say so); :back (it may, and has not
    # noticed yet what was taken from it).
    Process = Struct.new(:node, :state, :runs, :untold) do
      def contact? = %i[alive back].include?(state)
      def begun = runs.select(&:begun)
    end

    attr_reader :processes, :starts

    # @param limit [Integer]
    # @param count [Integer] of processes
    def initialize(limit, count)
      @limit = limit
      @number = 0
      @starts = Hash.new(0) # jid => how often it has begun
      @processes = Array.new(count) { new_process }
    end

    # In the place of one that is gone.
    def new_process = Process.new("host:#{@number += 1}:aa", :alive, [], [])

    def replace(process) = @processes[@processes.index(process)] = new_process

    def begin_run(run)
      run.begun = true
      @starts[run.jid] += 1
    end

    # @param recovered [Array<Ringspun::Jobs::Storage::Recovered>]
    def taken_over(recovered)
      recovered.each do |one|
        process = @processes.find { |each| each.node == one.node } or next # it was killed
        run = process.runs.find { |each| !each.old && each.list == one.queue && each.fetched.entry == one.entry }
        run.old = true if run
      end
    end

    # @return [Array<String>] what must not be
    def faults
      runs = @processes.flat_map(&:begun)
      old = runs.count(&:old)
      faults = []
      faults << "#{runs.size - old} run, the limit is #{@limit}" if runs.size - old > @limit
      faults << "#{runs.size} run with #{old} old ones, the limit is #{@limit}" if runs.size > 2 * @limit
      faults
    end
  end
end
