# frozen_string_literal: true

class SameTwice
  # What came of a program in threads and in strands, beside each other.
  class Differences
    # A difference that stays: the step, what it is in either world, and why.
    Known = Data.define(:step, :threads, :strands, :why)

    KNOWN = [
      Known.new(step: /\Alimited \S+::(Condition|SleepOfMutex)\z/, threads: "NilClass", strands: "Integer",
                why: "Mutex#sleep, and ConditionVariable#wait which calls it, answer nil in a thread if the limit has passed. " \
                     "CRuby does not ask a scheduler for that, and answers the seconds (rb_mutex_sleep in thread_sync.c)."),
      Known.new(step: /\Alimited \S+MonitorCondition\z/, threads: "false", strands: "true",
                why: "The same, for MonitorMixin::ConditionVariable#wait."),
      Known.new(step: /\Acut \S+ kill\z/, threads: /\A\d+\z/, strands: "cut_short",
                why: "After a Fiber#kill CRuby kills the fiber again each time that it comes back to it (fiber_check_killed in " \
                     "cont.c). So the end of a turn in one of its `ensure` blocks ends that block.")
    ].freeze

    # @return [Array<String>] one for each step that differs
    def self.between(expected, actual) = new.between(expected, actual)

    def between(expected, actual)
      (expected.keys | actual.keys).sort.flat_map { |name| of_actor(name, expected[name], actual[name]) }
    end

    private

    # Step by step, or as a whole if an actor did not get to its end.
    def of_actor(name, one, other)
      return told(name, one, other) unless [one, other].all? { |each| each in [:value, Array] }

      logs = [one.last, other.last]
      (0...logs.map(&:size).max).flat_map { |i| told(name, *logs.map { |log| log[i] }) }
    end

    def told(name, one, other)
      same?(one, other) ? [] : ["actor #{name}:\n  threads #{one.inspect}\n  strands #{other.inspect}".gsub("SameTwice::", "")]
    end

    def same?(one, other, step = nil)
      return true if one == other || one == EARLY || other == EARLY || known?(one, other, step)
      return false unless one.is_a?(Array) && other.is_a?(Array) && one.size == other.size

      step = one.first if one.first.is_a?(String) && one.first == other.first
      one.zip(other).all? { |pair| same?(*pair, step) }
    end

    def known?(one, other, step)
      KNOWN.any? { |known| known.step === step && known.threads === one.to_s && known.strands === other.to_s }
    end
  end
end
