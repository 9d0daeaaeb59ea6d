# frozen_string_literal: true

# What tests of concurrent procs share, for files that run on CRuby too: see the one of that name there.
module Evaluations
  include Strands

  Failure = Class.new(StandardError)
  Evaluation = Ringspun::Evaluation
  ConcurrentProc = Ringspun::ConcurrentProc
  Cancelled = Evaluation::Cancelled

  # Where errors that end runs are logged, which is nobody's output.
  class Log
    def initialize
      @text = ""
    end

    def string = @text

    def puts(message)
      @text += "#{message}\n"
    end
  end

  attr_reader :log

  def setup
    super
    ConcurrentProc.error_log_output = @log = Log.new
  end

  def teardown
    ConcurrentProc.error_log_output = $stderr
    super
  end

  def conproc(*arguments, &block) = Ringspun.concurrent_proc(*arguments, &block)
  def current = Evaluation.current

  # A run of that block which waits by now, or has ended.
  def begun(*arguments, &block) = conproc(*arguments, &block).call_detached.tap { wait(0) }

  # A run that waits for ever and notes in `ensured` that it has unwound.
  def waiting(ensured = [], name = :ensured)
    begun do
      wait(Float::INFINITY)
    ensure
      ensured << name
    end
  end

  # Lets all of them begin, and one that waits for others see their end.
  def settle = 5.times { wait(0) }

  def end_all(*evaluations) = evaluations.each { |evaluation| evaluation.conclude_to(nil) unless evaluation.concluded? }

  def assert_failed(expected, evaluation, part = nil)
    error = error_of { evaluation.await_result }
    assert_kind_of expected, error
    assert_match part, error.message if part
    error
  end

  def simulate(**options, &block) = Ringspun::Simulation.run(faults: false, **options, &block)

  def error_of
    yield
    nil
  rescue Exception => error
    raise if error.is_a?(Minitest::Assertion)

    error
  end
end

# Without mruby-regexp: a text without special characters.
class Regexp
  def self.compile(source, *) = new(source)

  def initialize(source)
    raise ArgumentError, "no plain text: #{source}" if source.include?("\\") || source.include?("*") || source.include?(".")

    @source = source
  end

  def match?(text) = text.to_s.include?(@source)
  alias === match?
end

Interrupt = Class.new(Exception) # rubocop:disable Lint/InheritException -- as there
SecurityError = Class.new(StandardError)

# That of mruby 4 is C, inside which no strand can wait, and the tests do.
class Array
  def self.new(size = 0, value = nil, &block)
    return super(size, value) unless block

    made = []
    made << block.call(made.size) while made.size < size
    made
  end
end

class Integer
  def even? = (self % 2).zero?
  def odd? = !even?
end

# Tests of the other Ruby require what is loaded here already.
module Kernel
  def require(_name) = true

  # Holds the thread.
  def sleep(seconds)
    till = Time.now + seconds
    nil until Time.now >= till
  end
end

# Every test on a simulated machine.
module OnSimulation
  def run_test(name) = Ringspun::Simulation.run(faults: false) { __send__(name) }
end
