# frozen_string_literal: true

module AcceptedOrTold
  # What the callers were told of each job, and what follows from it for the store. Several threads write it.
  class Ledger
    # What a caller was told: :accepted, with the jid; :no, that its job is not stored; :locked, that another job holds its lock;
    # :stopped, that a middleware has stopped it; :unknown, that it may be stored. `error` is what it was told, if it
    # is one.
    Told = Struct.new(:way, :outcome, :jid, :error)

    # @param stops [#call] whether a middleware stops the job of that number
    def initialize(stops)
      @stops = stops
      @told = {}
      @failures = []
      @lock = Mutex.new
    end

    # @param answers [Array<String, nil, Exception, Calls::Kept>] of each job
    def note(way, numbers, answers)
      locked do
        if answers.size == numbers.size
          numbers.zip(answers) { |number, answer| note_one(way, number, answer) }
        else
          @failures << "#{way}: #{answers.size} answers for #{numbers.size} jobs"
        end
      end
    end

    # A caller was cancelled or interrupted, and does not know what has become of its jobs.
    def note_cut(way, numbers)
      locked { numbers.each { |number| @told[number] = Told.new(way, :unknown) } }
    end

    # @param stored [Hash{Integer => Array<String>}] the jids of the entries of each job
    # @param executed [Hash{Integer => Integer}] how often each has run
    # @return [Array<String>] what is wrong
    def failures(stored, executed)
      strangers = (stored.keys | executed.keys) - @told.keys
      [*@failures, *strangers.map { |number| "job #{number} is stored, and nobody was told anything" },
       *@told.flat_map { |number, told| [*judge(told, stored.fetch(number, []), executed.fetch(number, 0))] },
       *locks_of_nobody]
    end

    # @return [Hash{String => Integer}] how many jobs have had which outcome
    def counts
      @told.values.map { |told| [told.outcome, told.error&.class&.name&.split("::")&.last].compact.join(" ") }.tally
    end

    private

    # A strand that is cancelled could not wait for the lock.
    def locked(&) = Fiber.blocking { @lock.synchronize(&) }

    def note_one(way, number, answer)
      if answer.is_a?(Calls::Kept)
        stopped = answer.error.nil? && @stops.call(number)
        @failures << "#{way} #{answer.what}: #{answer.error.class}" unless stopped
        answer = answer.error
      end
      @told[number] = Told.new(way, outcome_of(way, number, answer), *(answer.is_a?(String) ? [answer] : [nil, answer]))
    end

    def outcome_of(way, number, answer)
      case answer
      when String then :accepted
      when Jobs::UnknownOutcomeError then :unknown
      when Jobs::UnavailableError, Jobs::StorageError, Jobs::PoolTimeoutError then :no
      when nil then nothing(way, number)
      else
        @failures << "#{way} told what is no promised error: #{answer.inspect} #{answer.backtrace&.first(5)&.join(", ")}"
        :unknown
      end
    end

    def nothing(way, number)
      return :stopped if @stops.call(number)
      return :locked if way == :set_unique

      @failures << "#{way} returned nil"
      :unknown
    end

    def judge(told, jids, runs)
      count = jids.size + runs
      case told.outcome
      when :accepted
        return "#{told.way}: accepted, and not stored" if count.zero?
        return "#{told.way}: accepted as #{told.jid}, and stored as #{jids}" unless (jids - [told.jid]).empty?
      when :no, :stopped, :locked
        return "#{told.way}: told that it is not stored (#{told.outcome}, #{told.error.inspect}), and stored" if count.positive?
      end
      "#{told.way}: stored #{count} times (#{told.outcome}, #{told.error.inspect})" if count > 1
    end

    # If a lock is held, some job has it.
    def locks_of_nobody
      all = @told.select { |_, told| told.way == :set_unique }.group_by { |number, _| Calls.lock_of(number) }
      all.transform_values { |pairs| pairs.map { |_, told| told.outcome } }.filter_map do |lock, outcomes|
        free = !outcomes.intersect?(%i[accepted unknown])
        "set_unique: #{lock} is held, and no job can have it" if free && outcomes.include?(:locked)
      end
    end
  end
end
