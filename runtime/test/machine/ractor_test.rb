# frozen_string_literal: true

require "test_helper"
require "support/strands"

# A machine per ractor. In processes of their own, because a process with a second ractor runs differently from then on; none
# of the programs makes fibers of its own, for CRuby 3.3 and 3.4 crash when two ractors do.
class RactorTest < Minitest::Test
  include Strands

  PRELUDE = <<~RUBY
    Warning[:experimental] = false
    def value_of(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
    def byte_from(fd) = (+"").tap { |buffer| machine.read(fd, buffer, 1) }
    def quiet = Thread.current.report_on_exception = false
    def descriptors = Dir.children("/proc/self/fd").size

    # A little of everything; 19.
    def work
      Ringspun.run do |machine|
        reader, writer = machine.pipe
        mutex, queue, sized = Ringspun::Mutex.new, Ringspun::Queue.new, Ringspun::SizedQueue.new(1)
        numbers = []
        machine.scope(deadline: 30) do |scope|
          3.times { |i| scope.spin { mutex.synchronize { machine.sleep(0.000_1) && queue.push(i) } } }
          scope.spin { 3.times { numbers << queue.pop } }
          scope.spin { 4.times { sized.push(1) } && sized.close }
          scope.spin { while (item = sized.pop) do numbers << item end }
          scope.spin { 5.times { machine.write(writer, "x") && machine.sleep(0.000_1) } && machine.close(writer) }
          scope.spin { until (byte = byte_from(reader)).empty? do numbers << byte.size end }
          scope.spin { numbers << machine.spin { 2 }.await }
          scope.spin { machine.timeout(0.000_1) { machine.sleep } rescue numbers << 5 }
        end
        machine.close(reader)
        numbers.sum
      end
    end
  RUBY

  def backend = "epoll"

  def child(code, *arguments, **options)
    super("#{PRELUDE}#{code}", *arguments, env: { "RINGSPUN_BACKEND" => backend }, **options)
  end

  # --- running ---

  def test_a_ractor_runs_strands
    assert_child "19\n#{backend}\n", "puts value_of(Ractor.new { work }), value_of(Ractor.new { Ringspun.backend.name })"
  end

  def test_ractors_and_the_main_one_at_the_same_time
    assert_child "[[190], 190]\n", <<~RUBY
      ractors = Array.new(4) { Ractor.new { Array.new(10) { work }.sum } }
      mine = Array.new(10) { work }.sum
      p [ractors.map { |ractor| value_of(ractor) }.uniq, mine]
    RUBY
  end

  # Each waits until the last has come, which could not be one after the other.
  def test_machines_that_wait_for_each_other
    assert_child "[\"a\", \"b\", \"c\", \"d\"]\n", <<~RUBY
      said, say = machine.pipe
      gates = Array.new(4) { machine.pipe }
      ractors = gates.each_with_index.map do |(gate, _), i|
        Ractor.new(say, gate, "abcd"[i]) do |say, gate, name|
          Ringspun.run { |machine| machine.write(say, name) && byte_from(gate) }
        end
      end
      Ringspun.run do |machine|
        names = Array.new(4) { byte_from(said) }
        machine.sleep(0.000_1)
        names.each { |name| machine.write(gates["abcd".index(name)].last, name) }
      end
      p ractors.map { |ractor| value_of(ractor) }
    RUBY
  end

  def test_the_machine_goes_on_while_a_thread_takes_from_a_ractor
    assert_child "[19, true]\n", <<~RUBY
      Ringspun.run do |machine|
        waiting = machine.running
        gate, open = machine.pipe
        ractor = Ractor.new(gate) { |gate| byte_from(gate) && work }
        Thread.new { machine.schedule(waiting, value_of(ractor)) }
        turns = 0
        machine.spin { (turns += 1) && machine.sleep(0.000_1) while turns < 10 or machine.write(open, "!") && false }
        p [machine.park, turns == 10]
      end
    RUBY
  end

  def test_threads_of_a_ractor_have_a_machine_each
    assert_child "[19, 19, true, :told]\n", <<~RUBY
      p value_of(Ractor.new {
        others = Array.new(2) { Thread.new { [work, machine] } }.map(&:value)
        me = machine.running
        Thread.new { sleep(0.001) && me.machine.schedule(me, :told) }
        [*others.map(&:first), others.map(&:last).push(machine).uniq.size == 3, machine.park(10)]
      })
    RUBY
  end

  def test_a_simulation_in_a_ractor
    assert_child "[3600.0, true]\n", <<~RUBY
      simulate = -> { Ringspun::Simulation.run(seed: 7) { |machine| machine.sleep(3600) && work } }
      inside, hash = value_of(Ractor.new {
        result = Ringspun::Simulation.run(seed: 7) { |machine| machine.sleep(3600) && work }
        [result.elapsed, result.trace_hash]
      })
      p [inside.floor(-2).to_f, hash == simulate.call.trace_hash]
    RUBY
  end

  def test_collections_at_every_allocation
    assert_child "[[19], 19]\n", <<~RUBY, timeout: 55
      ractors = Array.new(2) { Ractor.new { GC.stress = true; work.tap { GC.stress = false } } }
      mine = work
      p [ractors.map { |ractor| value_of(ractor) }.uniq, mine]
    RUBY
  end

  def test_stacks_of_many_strands_in_several_ractors
    assert_child "[[900], 900]\n", <<~RUBY
      def many
        Array.new(3) { Ringspun.run { |m| m.await(*Array.new(300) { m.spin { m.sleep(0.000_1) && 1 || 1 } }).size }.tap { GC.start } }.sum
      end
      ractors = Array.new(3) { Ractor.new { many } }
      mine = many
      p [ractors.map { |ractor| value_of(ractor) }.uniq, mine]
    RUBY
  end

  # --- errors ---

  def test_errors_come_back_with_their_cause
    assert_child "Ractor::RemoteError: KeyError none [\"IOError\"]\n", <<~RUBY
      begin
        value_of(Ractor.new {
          quiet
          Ringspun.run do |machine|
            machine.scope do |scope|
              scope.spin { begin machine.sleep ensure raise IOError end }
              machine.yield
              raise KeyError, "none"
            end
          end
        })
      rescue Ractor::RemoteError => error
        cause = error.cause
        puts "\#{error.class}: \#{cause.class} \#{cause.message} \#{Ringspun.suppressed(cause).map { |each| each.class.name }}"
      end
    RUBY
  end

  def test_errors_of_an_exploration_name_the_seed
    assert_child "seed 3: odd\n", <<~RUBY
      class Odd < StandardError
        def message = "odd"
      end
      begin
        value_of(Ractor.new { quiet; Ringspun::Simulation.explore(1, from: 3) { raise Odd } })
      rescue Ractor::RemoteError => error
        puts error.cause.message
      end
    RUBY
  end

  def test_errors_that_nobody_joins_are_told_at_the_end_of_the_run
    answer = child("value_of(Ractor.new { Ringspun.run { |m| m.spin { raise 'unread' }; m.sleep(0.000_1) } })")
    assert_match(/ended with an error that nobody joined: .*unread \(RuntimeError\)/, answer.err)
    assert_predicate answer.status, :success?
  end

  # The main ractor's thread is none that could wake it.
  def test_a_deadlock_in_a_ractor
    assert_child "Ringspun::DeadlockError\n", <<~RUBY
      begin
        value_of(Ractor.new { quiet; Ringspun.run { |machine| machine.park } })
      rescue Ractor::RemoteError => error
        puts error.cause.class
      end
    RUBY
  end

  # --- what stays where it is ---

  def test_nothing_of_a_machine_can_be_sent_moved_or_shared
    refused = Array.new(9) { %w[copy move share] }.flatten.tally
    assert_child "#{refused}\n", <<~RUBY
      strand = machine.spin { machine.park }
      objects = [machine, strand, Ringspun::Mutex.new, Ringspun::Semaphore.new(1), Ringspun::Condition.new,
                 Ringspun::Barrier.new(2), Ringspun::Queue.new, Ringspun::SizedQueue.new(1)]
      refused = []
      receiver = Ractor.new { Ractor.receive }
      ways = { "copy" => ->(object) { receiver.send(object) }, "move" => ->(object) { receiver.send(object, move: true) },
               "share" => ->(object) { Ractor.make_shareable(object) } }
      machine.scope do |scope|
        [*objects, scope].each do |object|
          ways.each do |name, way|
            way.call(object)
          rescue Ringspun::UsageError, Ractor::Error, TypeError => error
            refused << name if error.message.include?("Ringspun") || error.message.include?("machine")
          end
        end
      end
      receiver.send(nil)
      machine.schedule(strand)
      strand.join
      puts refused.tally.to_s
    RUBY
  end

  def test_a_machine_that_outlives_its_ractor_cannot_be_used
    assert_child "[Ringspun::WrongThreadError, Ringspun::WrongThreadError, false]\n", <<~RUBY
      left = value_of(Ractor.new { machine })
      errors = [-> { left.sleep(0) }, -> { left.close }].map { |use| use.call rescue $!.class }
      p [*errors, left.equal?(machine)]
    RUBY
  end

  def test_a_closed_machine_of_a_ractor_leaves_no_descriptor
    assert_child "0\n", <<~RUBY
      use = -> { value_of(Ractor.new { work && machine.close }) }
      use.call
      before = descriptors
      10.times { use.call }
      puts descriptors - before
    RUBY
  end

  # A collector that searches stacks may take something for one or two of them.
  def test_machines_of_ended_ractors_are_closed_by_a_collection
    assert_child "true\n", <<~RUBY
      def use = 10.times { value_of(Ractor.new { work }) }
      use
      before = descriptors
      3.times { use }
      GC.start
      puts descriptors - before < 20
    RUBY
  end

  # --- the rest of the process ---

  def test_a_signal_is_for_the_main_ractor
    assert_child "[\"DEFAULT\", \"cancelled\", \"!\"]\n", <<~RUBY
      said, say = machine.pipe
      gate, open = machine.pipe
      ractor = Ractor.new(say, gate) { |say, gate| Ringspun.run { |m| m.write(say, "!") && byte_from(gate) } }
      byte_from(said)
      before = trap("INT", "DEFAULT")
      outcome = begin
        Ringspun.run { |machine| Process.kill(:INT, Process.pid) && machine.sleep }
      rescue Interrupt
        "cancelled"
      end
      machine.write(open, "!")
      p [before, outcome, value_of(ractor)]
    RUBY
  end

  def test_a_fork_in_a_ractor
    assert_child "19 0\n", <<~RUBY
      puts value_of(Ractor.new {
        Ringspun.run do |machine|
          child = fork { exit!(work == 19 ? 0 : 1) }
          status = machine.waitid(child)
          "\#{work} \#{status.exitstatus}"
        end
      })
    RUBY
  end

  # Not while another runs: there the child of plain Ruby may hang.
  def test_a_fork_of_the_main_ractor_after_another
    assert_child "0 19\n", <<~RUBY
      value = value_of(Ractor.new { work })
      child = fork { exit!(work == 19 ? 0 : 1) }
      puts "\#{machine.waitid(child).exitstatus} \#{value}"
    RUBY
  end

  # --- what ractors share ---

  # Two that make the same symbol at the same time may get two of them.
  def test_all_symbols_of_the_binding_are_made_when_it_is_loaded
    source = File.expand_path("../../ext/ringspun/binding/**/*.c", __dir__)
    assert_child "[]\n[]\n", <<~RUBY, source
      files = Dir[ARGV.first]
      abort "no source" if files.empty?
      names = files.flat_map { |file| File.read(file).scan(/(?:rb_intern|\\bput\\(hash, |PUT\\()\\(?"(\\w+)"/) }.flatten
      all = -> { Symbol.all_symbols.map(&:name) }
      known = all.call
      p names - known
      simulated = Thread.new { Ringspun::Simulation.run { |machine| work && machine.yield } }.value.trace
      strand = machine.spin { machine.sleep }
      states = [strand.state, machine.yield && strand.state, machine.terminate(strand) && machine.yield && strand.state]
      abort unless machine.metrics.any? && simulated.any? && states.any?
      ["/", "/dev/null", $PROGRAM_NAME].each { |path| machine.statx(path) rescue nil }
      p all.call - known
    RUBY
  end

  def test_constants_can_be_used_in_a_ractor
    assert_child "true\n", <<~RUBY
      shareable = [Ringspun, Ringspun::Machine, Ringspun::Simulation].flat_map do |each|
        each.constants.map { |name| each.const_get(name) }.map { |value| Ractor.shareable?(value) }
      end
      p shareable.all?
    RUBY
  end
end

# Each ractor's machine with a ring of its own.
class RactorOnUringTest < RactorTest
  def backend = "uring"
end
