# frozen_string_literal: true

module AcceptedOrTold
  # A program drawn at random: settings, and steps, each of which may be left out.
  #
  # - [:call, place, way, numbers, queue]: a caller begins, in a :strand, in a :thread, or in a strand of a thread's own :machine
  # - [:script, verdict]: for an exchange that comes, as {ScriptedProxy} takes it; or [:become, state]
  # - [:become, state]: of {Server}, or :away, or :closing
  # - [:cut]: all connections
  # - [:meanwhile]: until all callers have ended, or one waits at the gate
  # - [:cancel, number]: one of the callers that have not ended
  # - [:release]: those that wait at the gate
  # - [:settle]: until all callers have ended
  class Program
    STATES = [*Server::STATES.keys, :away, :closing].freeze
    BURSTS = (2..5)
    CALLERS_MOST = 8
    JOBS_MOST = 6
    # So many go in more than one call of the storage.
    JOBS_MANY = 1001
    BATCH_KINDS = %i[perform_bulk enqueue_all active_job_perform_all_later].freeze

    attr_reader :settings, :steps

    # @param random [Random]
    # @param ways [Hash{Symbol => Boolean}] the ways to enqueue, with whether they take many jobs
    def initialize(random, ways)
      @random = random
      @ways = ways
      @last = 0
      @settings = draw_settings
      @steps = Array.new(random.rand(BURSTS)) { draw_burst }.flatten(1)
    end

    # @return [String]
    def self.describe(settings, steps)
      [settings.inspect, *steps.map { |step| step.inspect.sub(/\[((?:\d+, ){8})[\d, ]*\]/, '[\1...]') }].join("\n  ")
    end

    private

    def one_in(count) = @random.rand(count).zero?
    def pick(*choices) = choices.sample(random: @random)

    def draw_settings
      { run: !one_in(3), strategy: one_in(4) ? pick(:single, :named_pool, :pool) : :group_commit, milliseconds: one_in(4),
        namespace: one_in(4) ? "ns" : "", middleware: one_in(4), listener: one_in(3), impatient: one_in(6),
        worker: one_in(3), over: one_in(8) }
    end

    def draw_burst
      [*(draw_state if one_in(3)), *Array.new(@random.rand(4)) { [:script, draw_verdict] }, *draw_calls,
       *(draw_interlude if one_in(2)), *([[:settle]] unless one_in(5))]
    end

    def draw_state = [[:become, one_in(2) ? :fine : STATES.sample(random: @random)]]

    def draw_calls = Array.new(1 + @random.rand(CALLERS_MOST)) { draw_call }

    # While some wait at the gate others come, and some of them leave.
    def draw_interlude
      [[:meanwhile], *draw_calls, *Array.new(@random.rand(3)) { [:cancel, @random.rand(CALLERS_MOST)] },
       *([[:cut]] if one_in(6)), *([[:script, draw_verdict]] if one_in(2)), [:release], *(draw_calls if one_in(2))]
    end

    def draw_verdict
      case @random.rand(16)
      when 0...4 then [:hold]
      when 4...6 then [:hold_answer]
      when 6...8 then [:lose]
      when 8 then [:cut]
      when 9 then [:refuse]
      when 10 then [:tear, @random.rand.round(2)]
      when 11 then [:tear_answer, @random.rand.round(2)]
      when 12 then @settings[:impatient] ? [:late] : [:lose]
      when 13 then [:become, STATES.sample(random: @random)]
      else [:pass]
      end
    end

    def draw_call
      way = @ways.keys.sample(random: @random)
      place = one_in(5) ? pick(:thread, :machine) : :strand
      queue = one_in(4) ? Calls::SPOILT : pick("default", "low")
      [:call, @settings[:run] || place == :machine ? place : :thread, way, draw_numbers(way), queue]
    end

    def draw_numbers(way)
      count = if !@ways[way] then 1
              elsif BATCH_KINDS.include?(way) && one_in(12) then JOBS_MANY
              else 1 + @random.rand(JOBS_MOST)
              end
      Array.new(count) { @last += 1 }
    end
  end
end
