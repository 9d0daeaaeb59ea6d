# frozen_string_literal: true

require_relative "strands"

# What tests of signals share. Each program is a process of its own; who sends the signal waits until that process sleeps,
# or the program sends it to itself.
module Signals
  include Strands

  PRELUDE = <<~'RUBY'
    # Looks when this process has let it, for in spawn, and for the GVL when a thread begins, it sleeps as well. That thread might
    # wake somebody: without one a wait for ever would be a deadlock. Another thread calls the block when the signal is sent.
    def kill_when_asleep(signal)
      status = "/proc/#{$$}/task/#{$$}/status"
      gate, open = IO.pipe
      waiters = [Process.detach(spawn("read _; while [ -e #{status} ] && ! grep -q '^State:.S' #{status}; do :; done; " \
                                     "kill -#{signal} #{$$}", in: gate))]
      waiters << Thread.new { waiters.first.join.then { yield } } if block_given?
      Thread.pass until waiters.all?(&:stop?)
      [gate, open].each(&:close)
    end

    # So that the strand which parks is woken by that.
    def wake_when_killed_asleep(signal)
      machine, strand = Ringspun::Machine.current.then { |one| [one, one.running] }
      kill_when_asleep(signal) { machine.schedule(strand, "woken") }
    end

    def kill_myself(signal) = Process.kill(signal, $$)

    def strand(name) = Ringspun.spin { begin; yield; ensure; puts name; end }
  RUBY

  # Runs the program, which must end by that signal, and answers the lines that it printed.
  def ended_by(signal, code, **options)
    answer = child(PRELUDE + code, **options)
    assert_predicate answer.status, :signaled?, "#{answer.status}\n#{answer.err}"
    assert_equal Signal.list.fetch(signal), answer.status.termsig, answer.err
    answer.out.lines(chomp: true)
  end

  def assert_program(expected, code) = assert_child(expected, PRELUDE + code)
end
