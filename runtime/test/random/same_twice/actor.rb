# frozen_string_literal: true

class SameTwice
  # Does the steps of one actor in a world, and writes down what came of each.
  class Actor
    include Crews

    attr_reader :log

    # @param locks [Array<Thread::Mutex, Monitor>] which all actors of the program share
    def initialize(world, place, locks)
      @world = world
      @place = place
      @locks = locks
      @log = []
    end

    def perform(steps)
      steps.each { |step| do_step(step) }
      @log
    end

    private

    def note(name, value) = @log << [name, value]

    # A failure goes as far as the next `rescued` scope, or else ends the step.
    def do_step(step)
      __send__(:"do_#{step.kind}", step)
    rescue Failure => error
      note(:failed, error.message)
    end

    # What the block answers, or what it raises.
    def outcome_of
      yield
    rescue StandardError, Ringspun::Error => error
      [error.class, error.message]
    end

    def do_all(steps) = steps.each { |step| __send__(:"do_#{step.kind}", step) }

    # --- waits ---

    def with_thing(step)
      thing = step.thing.new(@world, step.way)
      yield thing
    ensure
      thing&.dispose
    end

    # The event is there, or comes meanwhile. Another actor brings it, and takes no lock that is not the thing's.
    def do_wait(step)
      with_thing(step) do |thing|
        giver = step[:before] ? thing.give && nil : @world.spin(step[:giver]) { pause(step) && thing.give }
        note(step.label, outcome_of { thing.await })
        giver&.join
      end
    end

    def do_limited(step)
      with_thing(step) do |thing|
        note(step.label, [outcome_of { thing.limited }, outcome_of { thing.works }])
      end
    end

    def do_shut(step)
      with_thing(step) do |thing|
        step[:before] ? thing.shut : shutter = @world.spin(step[:giver]) { pause(step) && thing.shut }
        note(step.label, outcome_of { thing.await })
        shutter&.join
      end
    end

    # Lets others go on, so that now this one is the first and now that one.
    def pause(step)
      step[:pauses].times { sleep(0) }
      sleep(TINY / 10) if step[:pauses] == 3
      true
    end

    # --- scopes ---

    def do_locked(step)
      lock = @locks[step[:lock]]
      lock.synchronize do
        do_all(step.body)
      ensure
        note(:owned, owned?(lock))
      end
      note(:given_up, !owned?(lock))
    end

    def owned?(lock) = lock.is_a?(Monitor) ? lock.mon_owned? : lock.owned?

    def do_in_time(step)
      note(:in_time, Timeout.timeout(step[:limit], *step[:error]) { do_all(step.body) && :done })
    end

    def do_rescued(step)
      do_all(step.body)
      raise Failure, "at the end" if step[:fails]
    rescue Failure => error
      note(:rescued, [error.message, $!.equal?(error)])
      do_all(step[:afterwards])
      note(:still, $!.equal?(error))
    ensure
      note(:ensured, $!.class)
    end

    def do_caught(step)
      note(:caught, catch(:away) do
        do_all(step.body)
        throw :away, :thrown if step[:fails]
        :through
      ensure
        note(:ensured, $!.class)
      end)
    end

    def do_local(step)
      Thread.current[:same_twice] = step[:value]
      do_all(step.body)
      note(:local, Thread.current[:same_twice])
    end

    def do_enumerator(step)
      items = Enumerator.new do |list|
        do_all(step.body)
        list << :first
        list << :second
      end
      note(:enumerator, [items.next, items.next, outcome_of { items.next }.first])
    end

    def do_fail(step) = raise(Failure, step[:message])

    # --- waits that are cut short ---

    # A limit passes, a raise or a kill comes, while the actor waits for what never comes. A limit that has passed earlier says
    # nothing, for then it depends on the processor how far the actor has got.
    def do_cut(step)
      with_thing(step) do |thing|
        case step[:by]
        when :limit then cut_by_limit(step, thing)
        else cut_by_other(step, thing)
        end
      end
    end

    def cut_by_limit(step, thing)
      before = @log
      @log = []
      reached = Thread::Queue.new
      holder = hold_meanwhile(step, thing, reached)
      value = outcome_of { Timeout.timeout(TINY, *step[:error]) { wait_in_scopes(step, step[:scopes], thing, reached) } }
      early = reached.empty? && !reached.closed?
      reached.close
      holder&.join
      inner, @log = @log, before
      note(step.label, early ? EARLY : [value, inner, outcome_of { thing.works }])
    end

    # The lock of a condition is taken by another actor while the wait for the condition is cut short.
    def hold_meanwhile(step, thing, reached)
      return unless step[:held] && thing.lock && !thing.is_a?(Held)

      @world.spin(step[:giver]) do
        reached.pop && reached.close && thing.lock.synchronize { sleep(TINY * 2) }
      end
    end

    def cut_by_other(step, thing)
      reached = Thread::Queue.new
      actor = Actor.new(@world, @place, @locks)
      victim = @world.spin(@place) { actor.__send__(:wait_in_scopes, step, step[:scopes], thing, reached) }
      note(step.label, outcome_of do
        reached.pop
        cut_meanwhile(step, thing, victim)
        [victim.join, actor.log, outcome_of { thing.works }]
      end)
    end

    # The lock of a condition is taken from the victim while it waits, and given up when it may have it back.
    def cut_meanwhile(step, thing, victim)
      return cut(step, victim) unless step[:held] && thing.lock && !thing.is_a?(Held)

      thing.lock.synchronize do
        cut(step, victim)
        3.times { sleep(0) }
      end
    end

    def cut(step, victim)
      step[:by] == :kill ? victim.kill(by_fiber: step[:by_fiber]) : victim.interrupt(*step[:error], "from outside")
    end

    # The last scope is the wait.
    def wait_in_scopes(step, scopes, thing, reached)
      scope, *inner = scopes
      case scope
      when nil
        reached << true
        return thing.await
      when Integer
        lock = @locks[scope]
        lock.synchronize { ensured(step, lock) { wait_in_scopes(step, inner, thing, reached) } }
      when :own_lock
        lock = Thread::Mutex.new
        lock.synchronize { ensured(step, lock) { wait_in_scopes(step, inner, thing, reached) } }
        note(:locked, lock.locked?)
      when :in_time then Timeout.timeout(LONG) { wait_in_scopes(step, inner, thing, reached) }
      when :rescued then rescued { wait_in_scopes(step, inner, thing, reached) }
      when :ensured then ensured(step, nil) { wait_in_scopes(step, inner, thing, reached) }
      end
    end

    def rescued
      yield
    rescue StandardError => error
      note(:rescued, error.class)
      raise
    end

    def ensured(step, lock)
      yield
    ensure
      owned = lock && owned?(lock)
      done = :cut_short
      begin
        done = outcome_of { ready_calls(step) }
      rescue Ringspun::Cancelled => error
        done = error.class
        raise
      ensure
        note(:ensured, [owned, done])
      end
    end

    # What never has to wait, and so is done in an `ensure` block as well, whatever has come about.
    def ready_calls(step)
      reader, writer = IO.pipe
      queue = Thread::Queue.new
      step[:ready].sum do |call|
        case call
        when :write then writer.write("b")
        when :read then writer.write("b") && reader.readpartial(1).size
        when :queue then (queue << 1).pop
        when :lock then Thread::Mutex.new.synchronize { 1 }
        when :monitor then Monitor.new.synchronize { 1 }
        when :signal then Thread::ConditionVariable.new.broadcast && 1
        when :select then IO.select(nil, [writer]).flatten.size
        when :timeout then Timeout.timeout(LONG) { 1 }
        when :close then IO.pipe.each(&:close).size
        end
      end
    ensure
      [reader, writer].each(&:close)
    end
  end
end
