# frozen_string_literal: true

require "stringio"
require_relative "on_simulation"
require_relative "strands"

# What tests of concurrent procs share. Errors that end runs are logged to `log`, which is nobody's output.
module Evaluations
  include Strands

  Evaluation = Ringspun::Evaluation
  ConcurrentProc = Ringspun::ConcurrentProc
  Cancelled = Evaluation::Cancelled

  # Whatever $stderr is when something is written, as before any test.
  class Stderr
    def puts(message) = $stderr.puts(message)
  end

  attr_reader :log

  def setup
    super
    ConcurrentProc.error_log_output = @log = StringIO.new
  end

  def teardown
    ConcurrentProc.error_log_output = Stderr.new
    super
  end

  def conproc(...) = Ringspun.concurrent_proc(...)

  def wait(...) = Ringspun.wait(...)

  def current = Evaluation.current

  # A run of that block which waits by now, or has ended.
  def begun(...) = conproc(...).call_detached.tap { wait(0) }

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

  def assert_failed(expected, evaluation, pattern = //)
    error = error_of { evaluation.await_result }
    assert_kind_of expected, error
    assert_match pattern, error.message
    error
  end
end
