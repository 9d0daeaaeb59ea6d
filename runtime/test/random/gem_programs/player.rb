# frozen_string_literal: true

require "json"

# Plays programs of the API of the gem `concurrently`, with the gem or with the file of ours that has its name. As a program of
# its own, it reads a program in each line, and answers with what the program has logged.
class GemPlayer
  # Where time is virtual: it stands still while anybody runs. So the clock decides nothing, and all that is due at one time is
  # due in one tick.
  module VirtualTime
    class << self
      attr_accessor :now
    end

    # For the gem's event loop.
    module Clock
      def lifetime = VirtualTime.now
    end

    # For the gem's selector, by which its loop waits.
    module Waits
      def process_ready_in(seconds) = seconds.finite? ? VirtualTime.now += seconds : super
    end
  end

  # A class that sees its own errors.
  class Told < Concurrently::Proc
    attr_accessor :player

    def trigger(event, *arguments)
      player.log("trigger", event, *arguments) if event == :error
      super
    end
  end

  IN_VAIN = "nothing to wait for"
  OURS = defined?(Ringspun::Machine)

  class << self
    def serve(input, output)
      Concurrently::Proc.error_log_output = nil
      while (line = input.gets)
        output.puts(JSON.generate(answer(JSON.parse(line))))
        output.flush
      end
    end

    # @param program [Hash] `virtual`: no real time, and no IO; `steps`: of [proc, kind, arguments ...]; 0 is the main program
    # @return [Array<String>] the log
    def answer(program)
      player = new(program["steps"])
      if program["virtual"] then play_in_virtual_time(player)
      else
        Concurrently::EventLoop.current.reinitialize!
        player.play
      end
      player.lines
    end

    private

    def play_in_virtual_time(player)
      return play_on_simulated_machine(player) if OURS

      VirtualTime.now = 0
      Concurrently::EventLoop.prepend(VirtualTime::Clock)
      Concurrently::EventLoop::IOSelector.prepend(VirtualTime::Waits)
      Concurrently::EventLoop.current.reinitialize!
      player.play
    end

    def play_on_simulated_machine(player)
      Ringspun::Machine.current.close if Ringspun::Machine.current?
      machine = Ringspun::Machine.new(backend: :sim)
      player.play
    ensure
      machine&.close
    end
  end

  attr_reader :lines

  def initialize(steps)
    @steps = steps.group_by(&:first).transform_values { |own| own.map { |_, *step| step } }
    @lines = []
    @runs = Hash.new { |runs, number| runs[number] = [] } # proc => the evaluations of its runs
    @counts = Hash.new(0)
    @suspended = {}.compare_by_identity # evaluation => what it waits for
    @procs = {}
    @pipes = Array.new(2) { IO.pipe }
  end

  def play
    perform("main", 0)
  rescue Exception => error
    log("main", "ends", error)
  ensure
    @over = true
    end_all
    @pipes.flatten.each(&:close)
  end

  def log(*what) = @over || @lines << what.map { |each| text(each) }.join(" ")

  private

  def end_all
    @runs.each_value do |runs|
      runs.each { |evaluation| evaluation.conclude_to(nil) if !evaluation.concluded? && free?(evaluation) }
    end
    wait 0
  rescue Concurrently::Error
    nil # a limit, or nothing to wait for
  end

  # Errors by name, since their texts are compared elsewhere; evaluations by their runs.
  def text(object)
    case object
    when ->(error) { error.is_a?(Concurrently::Error) && error.message.start_with?("Infinitely") } then IN_VAIN
    when Exception then "#{object.class.name.split("::").last}(#{object.message.lines.first&.chomp})"
    when Concurrently::Evaluation then name_of(object)
    when String, Symbol then object.to_s
    else object.inspect
    end
  end

  def name_of(evaluation)
    @runs.each { |number, runs| (at = runs.index { |each| each.equal?(evaluation) }) and return "run #{at} of #{number}" }
    "an evaluation"
  end

  # `known`: others can get at the evaluation when it has waited for the first time. In the gem an evaluation that a run has of
  # itself before that may never be concluded.
  def perform(name, number, known = false)
    (@steps[number] || []).each_with_index do |(kind, *arguments), at|
      break if @over

      log(name, at, kind, *arguments)
      result = begin
        send("do_#{kind}", *arguments)
      rescue StandardError => error
        raise if kind == "raise"

        error
      end
      register(number, Concurrently::Evaluation.current) if known && (kind == "wait" || kind == "await_resume")
      log(name, at, kind, "=>", result)
    end
  end

  # --- starts ---

  def run_of(number, known)
    name = "#{number}.#{@counts[number] += 1}"
    begin
      perform(name, number, known)
    ensure
      log(name, "leaves") # an ensure block that waits for nobody
    end
    "value of #{name}"
  end

  def register(number, evaluation)
    @runs[number] << evaluation unless @runs[number].any? { |each| each.equal?(evaluation) }
    evaluation
  end

  def proc_of(number, known)
    @procs[[number, known]] ||= begin
      player = self
      body = ->(*) { player.send(:run_of, number, known) }
      made = number.odd? ? Told.new(&body) : concurrent_proc(&body)
      made.player = self if number.odd?
      made.on(:error) { |error| log("handler of #{number}", error) } if number % 3 == 0
      made
    end
  end

  def do_call(number, known) = suspended(:call) { proc_of(number, known).call }

  def do_call_nonblock(number, known)
    result = suspended(nil) { proc_of(number, known).call_nonblock }
    result.is_a?(Concurrently::Evaluation) ? register(number, result) : result
  end

  def do_call_detached(number, known) = register(number, proc_of(number, known).call_detached)
  def do_call_and_forget(number, _known) = proc_of(number, false).call_and_forget

  # --- waits ---

  # Notes that the current evaluation waits, so that others do to it only what the gem allows.
  def suspended(what)
    me = Concurrently::Evaluation.current
    before = @suspended[me]
    @suspended[me] = what
    yield
  ensure
    @suspended[me] = before if me
  end

  def limit(within, result)
    return {} unless within

    result ? { within:, timeout_result: result } : { within: }
  end

  def do_wait(seconds) = suspended(:wait) { wait(seconds) }
  def do_await_resume(within, result) = suspended(:wait) { await_resume!(limit(within, result)) }

  def do_await(number, within, result, block)
    evaluation = @runs[number].last or return
    return if evaluation.equal?(Concurrently::Evaluation.current)

    suspended(:wait) do
      next evaluation.await_result(limit(within, result)) unless block

      evaluation.await_result(limit(within, result)) do |value|
        text(value) == IN_VAIN ? raise(value) : "block of #{text(value)}" # which the gem gives to the block
      end
    end
  end

  def do_await_fastest(numbers, within, result)
    evaluations = numbers.filter_map { |number| @runs[number].last }
    return if evaluations.size < 2 || evaluations.any? { |each| each.equal?(Concurrently::Evaluation.current) }

    suspended(:wait) { await_fastest(*evaluations, limit(within, result)) }
  end

  # --- what is done to others ---

  # The gem fails in ways of its own if an evaluation is concluded that is in the middle of a call.
  def free?(evaluation)
    return true unless @suspended.key?(evaluation)

    !@suspended[evaluation].nil?
  end

  def do_resume(number, value)
    evaluation = number.zero? ? @main : @runs[number].last
    return unless evaluation && @suspended[evaluation] == :wait

    evaluation.resume!(value)
  end

  def do_conclude(number, value)
    evaluation = @runs[number].last
    return if evaluation.nil? || !free?(evaluation) || evaluation.equal?(Concurrently::Evaluation.current)

    evaluation.conclude_to(value == "error" ? KeyError.new("concluded") : value)
  end

  def do_conclude_itself(value)
    me = Concurrently::Evaluation.current
    me.conclude_to(value) if @runs.each_value.any? { |runs| runs.any? { |each| each.equal?(me) } }
  end

  # --- the rest ---

  def do_raise(message) = raise(message)
  def do_concluded(number) = @runs[number].last&.concluded?
  def do_waiting(number) = @runs[number].last&.waiting?
  def do_put(key, value) = (me = Concurrently::Evaluation.current).is_a?(Concurrently::Proc::Evaluation) && me[key] = value
  def do_get(number, key) = @runs[number].last&.then { |run| [run[key], run.key?(key), run.keys] }

  # --- IOs ---

  # One waits at a time: the gem wakes those whose IOs are ready in no certain order, and only the last that waits for an IO.
  def alone(pipe)
    return if @waiting

    @waiting = pipe
    begin
      suspended(:io) { yield(*@pipes[pipe]) }
    ensure
      @waiting = nil
    end
  end

  # Both always let others run. Somebody writes after some turns, because a wait for an IO is never found to be in vain.
  def do_await_readable(pipe, turns, within, result)
    alone(pipe) do |reader, writer|
      writing = concurrent_proc { turns.times { wait(0) } && writer.write_nonblock("x") }
      writing.call_and_forget unless within && turns > 2
      reader.await_readable({ poll_first: false, **limit(within, result) })
    end
  end

  def do_await_writable(pipe, within, result)
    alone(pipe) { |_, writer| writer.await_writable({ poll_first: false, **limit(within, result) }) }
  end

  def do_write(pipe) = @pipes[pipe].last.write_nonblock("x")
  def do_read(pipe) = @waiting == pipe || @pipes[pipe].first.read_nonblock(100, exception: false)
end

GemPlayer.serve($stdin, $stdout) if $PROGRAM_NAME == __FILE__
