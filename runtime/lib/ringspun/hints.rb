# frozen_string_literal: true

module Ringspun
  # Our words for those of Async, Thread and Trio, for programmers who come from there. The NoMethodError of such a name has ours
  # as its "Did you mean?".
  #
  # It is a hint and no method, so that `respond_to?` stays true to what there is, and no class of Ruby's is changed: Ruby lets
  # libraries register what looks for names that were meant.
  #
  # @api private
  module Hints
    CURRENT = "Ringspun::Machine.current"
    FIBER_STORAGE = "Fiber[:name]"
    ON_ERROR = "Ringspun.run(on_error: ...)"
    WORDS = {
      Strand => {
        "strand.await" => %i[value wait result],
        "strand.terminate" => %i[cancel stop kill exit],
        "strand.alive?" => %i[finished? complete? completed? stopped? stop? cancelled?],
        "strand.state" => %i[status running?],
        "strand.error" => %i[failed? exception],
        "strand.owner" => %i[parent parent= root group],
        "strand.machine" => %i[reactor],
        "strand.name = ..." => %i[annotate],
        "strand.name" => %i[annotation description],
        "machine.schedule(strand, value_or_error)" => %i[raise run wakeup],
        "machine.running" => %i[current?],
        "machine.strands" => %i[children children? head head= tail tail=],
        "machine.sleep" => %i[sleep],
        "machine.yield" => %i[yield priority priority=],
        "machine.timeout" => %i[with_timeout],
        "scope.spin" => %i[async],
        "scope.cancel" => %i[transient? transient= consume],
        "Ringspun.scope" => %i[wait_all],
        "Ringspun.shield" => %i[defer_cancel defer_stop cancel_deferred? stop_deferred? pending_interrupt?],
        "Ringspun.inspect_tree" => %i[backtrace backtrace_locations print_hierarchy traverse],
        "Fiber.current" => %i[fiber],
        "Thread.current" => %i[native_thread_id],
        "TracePoint.new" => %i[add_trace_func set_trace_func],
        FIBER_STORAGE => %i[[] []= fetch key? keys thread_variable? thread_variable_get thread_variable_set thread_variables],
        ON_ERROR => %i[abort_on_exception abort_on_exception= report_on_exception report_on_exception=]
      },
      Scope => {
        "scope.spin" => %i[async spawn start start_soon],
        "scope.cancel" => %i[stop terminate cancel_scope],
        "scope.size" => %i[empty?],
        "scope.remaining" => %i[deadline],
        "machine.running" => %i[parent_task],
        "machine.strands" => %i[tasks child_tasks children],
        "Ringspun.scope" => %i[wait join await]
      },
      Semaphore => {
        "semaphore.hold" => %i[synchronize with],
        "semaphore.acquire" => %i[lock],
        "semaphore.acquire(timeout: 0)" => %i[try_acquire try_lock],
        "semaphore.release" => %i[unlock],
        "semaphore.available" => %i[blocking? count limit empty?],
        "Ringspun::Semaphore.new" => %i[limit=],
        "scope.spin" => %i[async]
      },
      Condition => {
        "condition.waiting" => %i[empty? waiting? waiting_count],
        "condition.signal" => %i[notify],
        "condition.broadcast" => %i[notify_all signal_all]
      },
      Mutex => { "mutex.synchronize" => %i[with hold], "mutex.lock" => %i[acquire], "mutex.unlock" => %i[release],
                 "Ringspun::Condition#wait(mutex)" => %i[sleep] },
      Queue => { "queue.push" => %i[enqueue signal], "queue.pop" => %i[dequeue receive wait], "queue.each" => %i[async] },
      Channel => { "channel.push" => %i[enq enqueue], "channel.pop" => %i[deq dequeue shift receive take] },
      Machine => {
        "machine.spin" => %i[spawn async start start_soon run fork],
        "machine.await" => %i[wait wait_all],
        "machine.timeout" => %i[with_timeout fail_after move_on_after],
        "machine.terminate" => %i[cancel kill raise],
        "machine.close" => %i[stop],
        "machine.running" => %i[current]
      },
      Ringspun => {
        "Ringspun.run" => %i[start Async Sync],
        "Ringspun.spin" => %i[spawn async start_soon fork],
        "Ringspun.scope" => %i[open_nursery wait_all],
        "machine.timeout" => %i[with_timeout fail_after move_on_after],
        CURRENT => %i[current machine]
      }
    }.transform_values { |words| words.flat_map { |word, names| names.map { |name| [name, word] } }.to_h.freeze }.freeze
    Ractor.make_shareable(WORDS)

    class << self
      # @return [String, nil] ours for that name
      def word(receiver, name)
        owner = WORDS.each_key.find { |kind| kind.equal?(receiver) || (kind.is_a?(Class) && kind === receiver) }
        return unless owner

        WORDS[owner][name] || elsewhere(owner, name)
      end

      # Registers a look-up for names of NoMethodErrors, in front of the present one.
      def register
        present = DidYouMean.spell_checkers["NoMethodError"]
        DidYouMean.correct_error(NoMethodError, Class.new(present) { prepend Checker })
      end

      private

      # What a machine has and the module has not, and the other way round.
      def elsewhere(owner, name)
        if owner.equal?(Ringspun) then "machine.#{name}" if Machine.public_method_defined?(name, false)
        elsif owner.equal?(Machine) then "Ringspun.#{name}" if Ringspun.singleton_methods(false).include?(name)
        end
      end
    end

    # What is put in front of Ruby's own look-up.
    module Checker
      def corrections
        word = Hints.word(receiver, method_name)
        word ? [word] : super
      end
    end

    register if defined?(DidYouMean) && DidYouMean.respond_to?(:correct_error)
  end
  private_constant :Hints
end
