# frozen_string_literal: true

module Ringspun
  # The body of every worker fiber, in which the machine is `self`: it runs one strand after the other. It is bytecode, for a
  # fiber cannot be left from inside a function in C.
  WORKER = Proc.new do |block|
    while true
      value = error = nil
      begin
        value = block.call
      rescue Exception => error
        error = __failed(error)
      end
      block = __ended(value, error)
    end
  end

  # Runs the block on this state's machine, and returns its value when all strands of the run have ended: those that the block has
  # spun, and those that these have. Inside another run it is one of its own.
  def self.run
    raise UsageError, "Ringspun.run needs a block" unless block_given?

    machine = Ringspun.machine
    machine.scope do |scope|
      scope.__adopt
      yield machine
    end
  end

  def self.shield(deadline: nil, &block) = machine.shield(deadline: deadline, &block)
  def self.timeout(seconds, &block) = machine.timeout(seconds, &block)
  def self.spin(&block) = machine.spin(&block)

  class Machine
    # Runs the block in a scope. All strands spun into the scope have ended when this returns. The first error, of the block or of
    # a strand, cancels the others, and is raised when they have ended.
    # What was cut short by the scope's own `cancel` has no value: nil.
    def scope(deadline: nil, shield: false, &block)
      raise UsageError, "scope needs a block" unless block

      __scope(deadline, shield, false, &block)
    end

    # `is_limit`: it is that of `timeout`.
    def __scope(deadline, shield, is_limit)
      scope = __open_scope(deadline, shield, is_limit)
      cancelled = value = error = nil
      begin
        value = yield scope
      rescue Cancelled => cancelled
      rescue Exception => error
        error = scope.__first_error || error
      ensure
        scope.cancel if cancelled || error
        begin
          while (ended_by = scope.__wait(cancelled || error ? true : false))
            ended_by.is_a?(Cancelled) ? cancelled ||= ended_by : error ||= scope.__first_error || ended_by
            scope.cancel
          end
        rescue UsageError => error # a function in C has resumed the generator that the scope is in
          scope.cancel
        end
        from_above = scope.__close
      end
      error ||= scope.__first_error
      raise error if error
      if scope.__timed_out? && !from_above && (cancelled || scope.__cut_children?)
        raise TimeoutError, is_limit ? "timed out after #{deadline} s" : "the scope's deadline (#{deadline} s) has passed"
      end
      raise cancelled if cancelled && (from_above || !scope.cancelled?)

      cancelled ? nil : value
    end

    # Runs the block to its end: whatever cancels the strand is raised afterwards. With a deadline in seconds of its own.
    def shield(deadline: nil, &block)
      raise UsageError, "shield needs a block" unless block

      scope(deadline: deadline, shield: true, &block)
    end

    # Cancels the block when it takes longer than that many seconds.
    def timeout(seconds, &block)
      raise UsageError, "timeout needs a block" unless block

      __scope(seconds, false, true, &block)
    end
  end
end
