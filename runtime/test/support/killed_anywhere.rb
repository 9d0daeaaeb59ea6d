# frozen_string_literal: true

# Kills a thread wherever it comes in some files.
module KilledAnywhere
  # For each line of these files that the block comes to: runs the block in a thread which is killed there, and yields the number
  # of that line to `check`.
  #
  # @param files [Array<String>] the ends of their paths
  # @return [Integer] how many lines there were
  def killed_anywhere(*files, check:, &block)
    number = 0
    check.call(number) while killed_at?(number += 1, files, block)
    number - 1
  end

  # Runs the block in a thread. Another thread is killed at one of the lines of a file to which it comes meanwhile, or what else
  # is to be done there. Threads that are left over are killed.
  #
  # @param number [Integer] of the line
  # @param file [String] the end of its path
  # @param end_it [#call] is called in a third thread, with that thread and with self at that line
  # @return [Array(Boolean, Object)] whether it came to that line, and the block's value
  def another_killed_at(number, file, end_it = ->(thread, _) { thread.kill })
    before = Thread.list
    gate, killer = Array.new(2) { Thread::Queue.new }
    asking = Thread.new { gate.pop.then { yield } }
    trace = TracePoint.new(:line) do |line|
      next if Thread.current == asking || !line.path.end_with?(file) || !(number -= 1).zero?

      there = [Thread.current, line.self]
      Thread.new { killer << end_it.call(*there) }
      Thread.pass while killer.empty? # which is no wait
    end
    trace.enable(target_thread: nil) { (gate << true) && assert(asking.join(Strands::SECONDS_MAX), "the call waits for ever") }
    [!killer.empty?, asking.value]
  ensure
    (Thread.list - before - [asking]).each(&:kill).each(&:join)
  end

  private

  # @return [Boolean] whether it came to that many lines
  def killed_at?(number, files, block)
    killer = Thread::Queue.new
    thread = Thread.new do
      trace = TracePoint.new(:line) do |line|
        next unless line.path.end_with?(*files) && (number -= 1).zero?

        victim = Thread.current
        Thread.new { killer << victim.kill }
        Thread.pass while killer.empty? # which is no wait
      end
      trace.enable(target_thread: Thread.current, &block)
    end
    thread.join
    !killer.empty?
  end
end
