# frozen_string_literal: true

require "delegate"

module AcceptedOrTold
  # What interrupts a caller in a thread.
  Interruption = Class.new(StandardError)
  # What ends a run.
  Over = Class.new(StandardError)

  # Between two attempts others run, for as long as they like: no program takes longer for it.
  module NoPause
    def sleep(_seconds) = Fiber.current_scheduler ? Ringspun::Machine.current.yield : Thread.pass
  end
  Jobs::Enqueuer.const_get(:Delivery).prepend(NoPause)

  # One run of a program. Whatever happens, its callers end.
  class Run
    QUEUES = ["default", "low"].freeze
    # Turns that a strand takes at most to come to where it waits.
    TURNS = 5
    # Seconds after which an impatient client goes, and without which it would wait for a late answer.
    TIMEOUTS = { true => 0.1, false => 20 }.freeze

    PATIENCE_SECONDS = 30

    Caller = Struct.new(:strand, :thread) do
      # A strand hears of it where it waits.
      def cancel = strand ? strand.terminate : thread&.raise(Interruption)
    end

    # @return [Ledger]
    attr_reader :ledger

    # @param name [String] of the program
    # @param server [Server]
    # @param proxy [ScriptedProxy]
    # @param events [Thread::Queue] which has :held when an exchange waits at the gate
    # @param call [#call] calls a way to enqueue
    def initialize(name, settings, server, proxy, events, call)
      @name = name
      @settings = settings
      @server = server
      @proxy = proxy
      @events = events
      @call = call
      @callers = Set.new.compare_by_identity
      @threads = []
      @ledger = Ledger.new(->(number) { @settings[:middleware] && stops?(number) })
    end

    # @param steps [Array<Array>]
    # @return [Array<String>] what is wrong
    def failures(steps)
      @steps = steps
      prepare
      @settings[:run] ? run(steps) : take(steps)
      finish
      executed = @settings[:worker] ? work : {}
      @ledger.failures(stored, executed)
    ensure
      ActiveSupport::Notifications.unsubscribe(@listener) if @listener
      Jobs.config.client_middleware.clear
    end

    private

    def stops?(number) = (number % 7).zero?

    def prepare
      @events.clear
      @proxy.reset
      @server.clear(prefix)
      redis = { path: @proxy.path, timeout: TIMEOUTS.fetch(@settings[:impatient]) }
      Jobs.configure do |config|
        config.update({ redis: redis, pool_size: 2, pool_timeout: 0.01, **@settings.slice(:strategy, :namespace, :milliseconds) })
      end
      Jobs.config.client_middleware.add(method(:stop)) if @settings[:middleware]
      listen if @settings[:listener] && defined?(ActiveSupport::Notifications)
      Calls.pool = Sidekiq.default_configuration.redis_pool.class.new(redis, namespace: @settings[:namespace])
    end

    def stop(_job_class, job, _queue) = stops?(Calls.number_of(job)) ? nil : yield

    def listen
      @listener = ActiveSupport::Notifications.subscribe(/\Aenqueue.*ringspun_jobs/) { |event| event }
    end

    def prefix = @settings[:namespace].then { |name| name.empty? ? "" : "#{name}:" }

    def run(steps)
      Ringspun.run { take(steps) }
    rescue Over
      nil
    end

    # A run that is over cancels all of its callers.
    def take(steps)
      steps.each { |step, *arguments| send(step, *arguments) }
      return settle unless @settings[:over]

      begin_calls
      @proxy.hold_no_more
      raise Over if @settings[:run]
    ensure
      @proxy.hold_no_more
    end

    # The server has done all that it was sent when the connections are closed.
    def finish
      @threads.each(&:join)
      become(:fine)
      Calls.pool.shutdown
      Jobs.close
      @proxy.drain
      @server.mend(prefix)
    end

    def script(verdict)
      kind, state = verdict
      @proxy.script(kind == :become ? [:call, -> { become(state) }] : verdict)
    end

    def become(state)
      near = %i[away closing].include?(state)
      @proxy.refusing = near && state
      @proxy.cut if near
      @server.become(near ? :fine : state)
    end

    def cut = @proxy.cut

    def call(place, way, numbers, queue)
      one = Caller.new
      @callers << one
      case place
      when :strand then one.strand = Ringspun::Machine.current.spin { tell(one, way, numbers, queue) }
      when :thread then one.thread = thread { tell(one, way, numbers, queue) }
      when :machine
        thread do
          Ringspun.run { tell(one, way, numbers, queue) }
        ensure
          Ringspun::Machine.current.close
        end
      end
    end

    # An interruption takes effect in a call only.
    def thread(&block) = Thread.handle_interrupt(Interruption => :never) { Thread.new(&block).tap { |made| @threads << made } }

    def tell(one, way, numbers, queue)
      answers = Thread.handle_interrupt(Interruption => :immediate) { @call.call(way, numbers, queue) }
      @ledger.note(way, numbers, answers)
    rescue Ringspun::Cancelled, Interruption
      @ledger.note_cut(way, numbers)
    rescue StandardError => error
      @ledger.note(way, numbers, Array.new(numbers.size, error))
    ensure
      @events << one
    end

    def meanwhile
      await until @callers.empty? || @proxy.held.positive?
    end

    def await
      @callers.delete(@events.pop(timeout: PATIENCE_SECONDS) || tell_who_waits)
    end

    # So that a hang has a name, when it is ended.
    def tell_who_waits
      warn "\nnobody has ended for #{PATIENCE_SECONDS} s: #{@name}\n#{Program.describe(@settings, @steps)}"
    end

    def release
      begin_calls
      @proxy.release
    end

    def cancel(number)
      begin_calls
      @callers.to_a[number % @callers.size].cancel unless @callers.empty?
    end

    # Callers come to where they wait, as far as that can be seen.
    def begin_calls
      TURNS.times { Ringspun::Machine.current.yield } if @settings[:run]
      Thread.pass until @callers.none? { |one| one.thread && !one.thread.stop? }
    end

    def settle
      begin_calls
      @proxy.hold_no_more
      await until @callers.empty?
    end

    def work
      Calls.executions.clear
      storage = Jobs::Storage::Redis.new({ path: @server.path }, namespace: @settings[:namespace])
      config = Jobs::Config.new.update({ queues: QUEUES, concurrency: 10 })
      worker = Jobs::Worker.new(config, storage: storage, logger: Logger.new(@log = StringIO.new))
      Ringspun.run do |machine|
        running = machine.spin { worker.run }
        machine.sleep(0.001) until QUEUES.all? { |queue| storage.list(queue, 0, 0).empty? } && storage.stats[:in_flight].zero?
        worker.stop
        running.join
      end
      Array.new(Calls.executions.size) { Calls.executions.pop }.tally
    ensure
      storage.close
    end

    def stored
      @server.jobs.group_by { |job| Calls.number_of(job) }.transform_values { |jobs| jobs.map { |job| job["jid"] } }
    end
  end
end
