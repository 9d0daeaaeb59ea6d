# frozen_string_literal: true

# Callers of a library that has no strands.
module InThreads
  # Yields what starts a caller, and the method that awaits its value.
  def in_callers = yield(Thread.method(:new), :value)
end
