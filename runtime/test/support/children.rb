# frozen_string_literal: true

require_relative "held_up"
require_relative "patience"
require_relative "zygote"

# Child processes with an end: a child that hangs is killed, by its pid, and fails the test.
module Children
  Answer = Data.define(:out, :err, :status)

  Minitest.after_run { puts "Rubies: #{Zygote.fresh} fresh, #{Zygote.forked} forked" }

  # Forks, runs the block in the child and answers its Process::Status. The child ends by exit!, so no at_exit block
  # of the tests runs there; it succeeds unless the block raises.
  def in_child(timeout: 30)
    pid = fork do
      yield
      leave_child(true)
    rescue Exception => error
      warn error.full_message unless error.is_a?(SystemExit)
      leave_child(error.is_a?(SystemExit) && error.success?)
    end
    wait_for(pid, timeout) { flunk "the forked child ran longer than #{timeout} s" }
  end

  # Runs code as the main program of a Ruby that can require ringspun, and answers what it printed and how it ended. It is forked
  # from one that has loaded ringspun, unless it is to be fresh, which takes longer: for what is about loading, or about a process
  # that has its memory to itself. `from` may be a zygote of the test's own.
  def ruby_child(code, *arguments, env: {}, timeout: 30, fresh: false, from: nil)
    stress = GC.stress
    GC.stress = false # nothing of ours runs in this process meanwhile
    out, err = Array.new(2) { IO.pipe }
    env = { **HeldUp.for_child("#{self.class}##{name}"), **env }
    child = Zygote.start(code, arguments, env:, fresh:, from:, out: out.last, err: err.last)
    printed = [out, err].map do |reader, writer|
      writer.close
      Thread.new { read_quietly(reader) }
    end
    status = await_end(child, timeout) { flunk "the Ruby child ran longer than #{timeout} s: #{code}" }
    Answer.new(*printed.map { |thread| await_text(thread, timeout) }, status)
  ensure
    [*out, *err].each(&:close)
    GC.stress = stress
  end

  private

  def wait_for(pid, timeout, &) = await_end(Zygote::Fresh.new(pid), timeout, &)

  def await_end(child, timeout)
    status = Patience.new(timeout, child.pid).until_true { |left| child.wait(left) } and return status

    Process.kill(:KILL, child.pid)
    child.wait(nil)
    yield
  end

  # A process that the child has left behind may still have what it prints to, which does not end then.
  def await_text(thread, timeout)
    Patience.new(timeout).until_true { |left| thread.join(left) }&.value or
      flunk "the Ruby child has ended, and #{timeout} s later a process that it has left behind still has its output"
  end

  # When the child is late, who waits for it closes what it prints to.
  def read_quietly(reader)
    Thread.current.report_on_exception = false
    reader.read
  end

  def leave_child(success)
    [$stdout, $stderr].each(&:flush)
    exit!(success)
  end
end
