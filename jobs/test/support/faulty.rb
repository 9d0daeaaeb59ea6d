# frozen_string_literal: true

require "delegate"

# A storage on which verbs fail as the test says, each as often as it says.
class Faulty < SimpleDelegator
  VERBS = %i[fetch wait_any in_flight begin_quarantined ack fail due extend recover recover_exq leave announce signals
             trim_dead trim_done unlock rouse time counters losses cron_define
             cron_push].freeze

  # What a verb raises, for which calls, and how many times more.
  Fault = Struct.new(:error, :only, :left)
  private_constant :Fault

  attr_reader :calls

  def initialize(storage)
    super
    @before = Hash.new { |all, verb| all[verb] = [] }
    @after = Hash.new { |all, verb| all[verb] = [] }
    @slow = Hash.new { |all, verb| all[verb] = [] }
    @calls = Hash.new { |all, verb| all[verb] = [] }
  end

  # Nothing is done. The block may raise only for some arguments; then the fault stays for the next call.
  def refuse(verb, times = 1, error = Ringspun::Jobs::UnavailableError.new("away"), &only)
    add(@before, verb, times, error, only)
  end

  # It is done, and nobody hears of it.
  def lose(verb, times = 1, &only)
    add(@after, verb, times, Ringspun::Jobs::UnknownOutcomeError.new("lost"), only)
  end

  # It is done, and the answer takes so long.
  def slow(verb, seconds, times = 1)
    times.times { @slow[verb] << seconds }
  end

  def mend = [@before, @after, @slow].each(&:clear)

  VERBS.each do |verb|
    define_method(verb) do |*arguments, **options|
      @calls[verb] << arguments
      strike(@before[verb], arguments)
      __getobj__.public_send(verb, *arguments, **options).tap do |answer|
        seconds = @slow[verb].shift
        Ringspun::Machine.current.sleep(seconds) if seconds
        strike(@after[verb], arguments, answer)
      end
    end
  end

  private

  def add(faults, verb, times, error, only)
    faults[verb] << Fault.new(error, only, times) if times.positive?
  end

  def strike(faults, arguments, answer = nil)
    fault = faults.first
    return if fault.nil? || (fault.only && !fault.only.call(*arguments, answer))

    fault.left -= 1
    faults.shift if fault.left.zero?
    raise fault.error
  end
end
