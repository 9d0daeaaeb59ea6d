# frozen_string_literal: true

require "test_helper"
require "support/strands"

# Spinning strands, waiting for them, and how they end.
class StrandTest < Minitest::Test
  include Strands

  # --- values ---

  def test_await_answers_the_value
    assert_equal 42, machine.spin { 42 }.await
    assert_nil machine.spin {}.await
  end

  def test_await_of_a_strand_that_has_ended
    strand = machine.spin { :value }
    yield_until { !strand.alive? }
    assert_equal %i[value value], [strand.await, strand.await]
  end

  def test_await_several_answers_in_the_order_given
    strands = [3, 1, 2].map { |turns| machine.spin { turns.times { machine.yield }.then { turns } } }
    assert_equal [3, 1, 2], machine.await(*strands)
    assert_equal [], machine.await
    assert_equal [1, 1], machine.await(strands[1], strands[1])
  end

  def test_join_answers_the_strand_or_nothing
    strand = machine.spin { 1 }
    assert_same strand, strand.join
    assert_nil machine.join(strand)
    assert_nil machine.join
  end

  def test_strands_spin_strands
    assert_equal 6, machine.spin { machine.spin { machine.spin { 6 }.await }.await }.await
  end

  def test_many
    strands = Array.new(2000) { |i| machine.spin { machine.yield.then { i } } }
    assert_equal 1999 * 1000, strands.sum(&:await)
  end

  def test_the_module_spins_as_well
    assert_equal 5, Ringspun.spin { 5 }.await
  end

  def test_the_block_is_called_without_arguments
    assert_equal [[], nil], machine.spin { |*arguments, &block| [arguments, block] }.await
    assert_equal 2, machine.spin(&-> { 2 }).await
    assert_ends_with ArgumentError, machine.spin(&->(_) { 2 })
  end

  def test_spin_without_a_block
    assert_raises(Ringspun::UsageError) { machine.spin }
    assert_raises(Ringspun::UsageError) { machine.scope(&:spin) }
  end

  # --- what a strand tells of itself ---

  def test_states
    gate = Ringspun::Queue.new
    during = nil
    strand = machine.spin do
      during = strand.state
      gate.pop
    end
    assert_equal [:new, true], [strand.state, strand.alive?]
    until_parked(strand)
    gate.push(1)
    assert_equal [:ready, :running], [strand.state, during]
    strand.join
    assert_equal [:done, false], [strand.state, strand.alive?]
  end

  def test_waits_for
    mutex = Ringspun::Mutex.new.lock
    permit = Ringspun::Semaphore.new(1).acquire
    sleeper = parked { machine.sleep }
    waiting = { /time to pass/ => sleeper, /a Mutex/ => parked { mutex.synchronize {} },
                /a Semaphore/ => parked { permit.acquire }, /a Condition/ => parked { Ringspun::Condition.new.wait },
                /a Barrier/ => parked { Ringspun::Barrier.new(2).wait }, /an item/ => parked { Ringspun::Queue.new.pop },
                /a place/ => parked { Ringspun::SizedQueue.new(1).push(1).push(2) },
                /strand to end/ => parked { sleeper.join }, /Machine#schedule/ => parked { machine.park },
                /strands of a scope/ => parked { machine.scope { |scope| scope.spin { machine.sleep } } } }
    waiting.each { |pattern, strand| assert_match pattern, strand.waits_for }
    assert_nil machine.running.waits_for
    machine.strands.drop(1).each { |strand| machine.terminate(strand) }
    mutex.unlock
    waiting.each_value { |strand| error_of { strand.join } }
    assert_nil sleeper.waits_for
  end

  def test_waits_for_names_the_op_and_the_descriptor
    reader, writer = machine.pipe
    strand = parked { machine.read(reader, +"") }
    assert_equal "read on descriptor #{reader}", strand.waits_for
    machine.write(writer, "x")
    strand.join
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_inspect
    strand = machine.spin {}
    assert_match(/\A#<Ringspun::Strand:0x\h+ new>\z/, strand.inspect)
    strand.join
    assert_match(/done>\z/, strand.inspect)
  end

  def test_machine_and_error
    good = machine.spin {}
    bad = machine.spin { raise Failure, "bad" }
    assert_equal [machine, nil, nil], [good.machine, good.error, bad.error]
    yield_until { !bad.alive? }
    assert_instance_of Failure, bad.error
    good.join
  end

  def test_a_strand_is_made_by_spin_only
    assert_raises(TypeError) { Ringspun::Strand.new }
    assert_raises(TypeError) { machine.spin {}.tap(&:join).dup }
  end

  # --- errors ---

  def test_an_error_is_raised_to_who_waits
    assert_equal "oh", assert_ends_with(Failure, machine.spin { raise Failure, "oh" }).message
  end

  def test_every_joiner_gets_the_error
    gate = Ringspun::Queue.new
    strand = machine.spin do
      gate.pop
      raise Failure
    end
    joiners = Array.new(3) { machine.spin { error_of { strand.await } } }
    until_parked(strand, *joiners)
    gate.push(nil)
    errors = machine.await(*joiners) + [error_of { strand.await }]
    assert_equal [strand.error], errors.uniq(&:object_id)
    assert_instance_of Failure, strand.error
  end

  def test_await_an_array
    strands = [3, 1, 2].map { |i| machine.spin { i.times { machine.yield }.then { i } } }
    assert_equal [3, 1, 2], machine.await(strands)
    assert_nil machine.join(strands)
    assert_equal [], machine.await([])
    assert_equal [], machine.await
    assert_equal [7], machine.await([machine.spin { 7 }])
  end

  def test_await_an_array_raises_as_it_does_for_several
    strands = [failed("one"), failed("two"), machine.spin { 3 }]
    error = assert_raises(Failure) { machine.await(strands) }
    machine.yield
    assert_equal ["one", %w[two]], [error.message, Ringspun.suppressed(error).map(&:message)]
  end

  def test_await_an_array_that_changes_meanwhile
    list = [machine.spin { machine.yield && nil || 1 }, machine.spin { list.clear && 2 }]
    assert_equal [1, 2], machine.await(list)
    assert_empty list
  end

  def test_await_what_is_no_strand
    [[1], [[1]], [[machine.spin {}], machine.spin {}]].each do |arguments|
      assert_raises(Ringspun::UsageError) { machine.await(*arguments) }
    end
    machine.yield
  end

  def test_await_several_raises_the_first_error_at_once
    gate = Ringspun::Queue.new
    %i[await join].each do |name|
      slow = parked { gate.pop }
      strands = [slow, machine.spin {}, machine.spin { machine.yield.then { raise Failure, "third" } }, machine.spin { gate.pop }]
      error = assert_raises(Failure) { machine.public_send(name, *strands) }
      assert_equal ["third", true, true], [error.message, slow.alive?, strands[3].alive?]
      2.times { |value| gate.push(value) }
      assert_equal [0, 1], machine.await(slow, strands[3])
    end
  end

  def test_await_several_of_which_one_never_ends_and_one_has_failed
    endless = parked { machine.park }
    bad = failed("bad")
    assert_equal "bad", assert_raises(Failure) { machine.await(endless, bad) }.message
    assert_equal "bad", assert_raises(Failure) { machine.join([bad, endless]) }.message
    assert_raises(Ringspun::TerminatedError) { machine.await(terminated, endless, bad) }
    machine.terminate(endless)
    assert_ends_with Ringspun::TerminatedError, endless
  end

  def terminated = parked { machine.park }.tap { |strand| machine.terminate(strand) && error_of { strand.join } }

  def test_await_several_of_which_one_is_terminated
    endless, other = Array.new(2) { parked { machine.park } }
    waiting = parked { error_of { machine.await(endless, other) } }
    machine.terminate(other)
    assert_instance_of Ringspun::TerminatedError, waiting.await
    assert_predicate endless, :alive?
    machine.terminate(endless)
    assert_ends_with Ringspun::TerminatedError, endless
  end

  def test_what_several_wait_for_fails_for_each
    gate = Ringspun::Queue.new
    endless = parked { machine.park }
    bad = parked { gate.pop && raise(Failure, "bad") }
    waiting = Array.new(3) { |turn| parked { error_of { machine.await(*[endless, machine.spin { turn }, bad].rotate(turn)) } } }
    gate.push(true)
    assert_equal %w[bad bad bad], machine.await(waiting).map(&:message)
    machine.terminate(endless)
    assert_ends_with Ringspun::TerminatedError, endless
  end

  def test_a_failure_of_which_a_cancelled_wait_hears_nothing
    gate = Ringspun::Queue.new
    bad, endless = parked { gate.pop && raise(Failure, "bad") }, parked { machine.park }
    waiting = parked { machine.await(endless, bad) }
    machine.terminate(waiting)
    assert_ends_with Ringspun::TerminatedError, waiting
    waiting = parked { machine.await(endless) }
    gate.push(true)
    assert_ends_with Failure, bad
    machine.yield
    assert_predicate waiting, :alive?
    machine.schedule(endless, 5)
    assert_equal [5], waiting.await
  end

  # The block gets the error before its scope cancels it.
  def test_await_several_of_a_scope
    seen = nil
    error = assert_raises(Failure) do
      machine.scope do |scope|
        machine.await(scope.spin { machine.park }, scope.spin { machine.yield.then { raise Failure, "child" } })
      rescue Failure => e
        seen = e
        raise
      end
    end
    assert_same seen, error
    assert_empty Ringspun.suppressed(error)
  end

  def test_the_backtrace_says_where
    strand = machine.spin { raise Failure }
    line = __LINE__ - 1
    assert_includes assert_ends_with(Failure, strand).backtrace.first, "#{File.basename(__FILE__)}:#{line}"
  end

  # What ends the program when nothing is known of it: of these it is known.
  def test_errors_that_stay_in_their_strand
    [NotImplementedError.new, LoadError.new, SyntaxError.new, NoMemoryError.new, SystemStackError.new].each do |error|
      assert_same error, error_of { machine.spin { raise error }.await }
      machine.yield # nothing is pending for the root
    end
  end

  def test_jumps_out_of_the_block_have_nowhere_to_go
    assert_ends_with LocalJumpError, machine.spin { break }, /break/
    assert_ends_with LocalJumpError, spin_with_return, /return/
    assert_ends_with UncaughtThrowError, machine.spin { throw :away }, /:away/
    caught = catch(:here) { machine.spin { throw :here, 1 }.tap { |strand| assert_ends_with UncaughtThrowError, strand } }
    assert_instance_of Ringspun::Strand, caught
  end

  def spin_with_return = machine.spin { return 1 }

  def test_a_return_at_the_top_level_of_a_script
    assert_child "LocalJumpError\nand on\n", <<~RUBY
      begin
        machine.spin { return }.await
      rescue LocalJumpError => error
        puts error.class
      end
      puts "and on"
    RUBY
  end

  def test_jumps_inside_the_block
    assert_equal 3, machine.spin { catch(:here) { throw :here, machine.yield || 3 } }.await
    assert_equal 4, machine.spin { [1].each { break machine.yield || 4 } }.await
    assert_equal 5, machine.spin { next 5 }.await
    assert_equal 6, machine.spin(&lambda { return machine.yield || 6 }).await
  end

  # --- waiting for the wrong one ---

  def test_a_strand_cannot_wait_for_itself
    strand = machine.spin { strand.await }
    assert_ends_with Ringspun::UsageError, strand, /own end/
    assert_raises(Ringspun::UsageError) { machine.running.join }
    assert_raises(Ringspun::UsageError) { machine.await(machine.running) }
  end

  def test_only_strands_of_this_machine_can_be_awaited
    [nil, 1, Object.new, machine].each { |other| assert_raises(Ringspun::UsageError) { machine.await(other) } }
    foreign = on_thread { machine.spin { 1 }.tap(&:join) }
    assert_raises(Ringspun::WrongThreadError) { machine.await(foreign) }
  end

  def test_a_wrong_strand_among_several_is_found_before_waiting
    sleeper = parked { machine.sleep }
    assert_raises(Ringspun::UsageError) { machine.await(sleeper, nil) }
    machine.terminate(sleeper)
    error_of { sleeper.join }
  end

  def test_a_cancelled_joiner_leaves_the_strand_alone
    strand = parked { machine.park }
    joiner = parked { strand.await }
    machine.terminate(joiner)
    assert_ends_with Ringspun::TerminatedError, joiner
    assert_equal :parked, strand.state
    machine.schedule(strand, 5)
    assert_equal 5, strand.await
  end

  # --- limits ---

  def test_strands_max
    on_thread do
      Ringspun::Machine.new(strands_max: 3) # the root is one
      strands = Array.new(2) { machine.spin { machine.park } }
      error = assert_raises(Ringspun::LimitError) { machine.spin { flunk } }
      assert_match(/at most 3 strands.*Semaphore/, error.message)
      assert_raises(Ringspun::LimitError) { machine.scope { |scope| scope.spin { flunk } } }
      machine.schedule(strands[0])
      strands[0].join
      assert_equal 1, machine.spin { 1 }.await
      machine.schedule(strands[1])
      strands[1].join
    end
  end

  # With huge stacks and little room for them, which is the same as ordinary stacks and too many of them.
  OUT_OF_STACKS = <<~RUBY
    size = File.read("/proc/self/status")[/VmSize:\\s*(\\d+)/, 1].to_i * 1024
    Process.setrlimit(:AS, size + (400 << 20))
    gate = Ringspun::Queue.new
    strands = Array.new(100) { |i| machine.spin { gate.pop.then { i } } }
    machine.yield while gate.num_waiting < strands.count(&:alive?)
    gate.close
    ended = strands.map { |strand| strand.await rescue $!.class }
    served, refused = ended.partition { |value| Integer === value }
    puts served.size.between?(5, 95), refused.uniq == [Ringspun::LimitError]
    puts strands.filter_map(&:error).all? { |error| error.message.match?(/MiB of address space, and RLIMIT_AS is \\d+ MiB/) }
    puts strands.filter_map(&:error).none? { |error| error.message.include?("max_map_count") }
    puts strands.zip(ended).all? { |strand, value| strand.error ? true : value == strands.index(strand) }
    again = Array.new(5) { |i| machine.spin { machine.sleep(0.001).then { i } } }
    puts machine.await(*again).sum, machine.metrics[:strands_live]
  RUBY

  # As many mappings as the system allows, of one page each.
  def test_out_of_memory_mappings
    most = File.read("/proc/sys/vm/max_map_count").to_i
    answer = child(<<~RUBY)
      file = File.open(RbConfig.ruby)
      maps = []
      begin
        loop { maps << IO::Buffer.map(file, 4096, 0, IO::Buffer::READONLY) }
      rescue SystemCallError
        maps.pop(20).each(&:free)
      end
      gate = Ringspun::Queue.new
      strands = Array.new(40) { machine.spin { gate.pop } }
      machine.yield while gate.num_waiting < strands.count(&:alive?)
      gate.close
      puts strands.filter_map { |strand| strand.await && nil rescue $!.message }.uniq
    RUBY
    lines = answer.out.lines
    assert_equal 1, lines.size, answer.out
    assert_match(/no stack .*the process has \d+ memory mappings, and vm\.max_map_count is #{most}: raise it with/, lines[0])
    refute_match(/RLIMIT_AS/, lines[0])
  end

  # So few are left that strands use them up. CRuby gives back all of the stacks that it wanted at once; how many mappings that
  # leaves depends on how many there were before.
  def test_out_of_mappings_by_strands_alone
    most = File.read("/proc/sys/vm/max_map_count").to_i
    [0, 700, 1400].each do |more|
      answer = child(<<~RUBY)
        file = File.open(RbConfig.ruby)
        maps = Array.new(#{most - 10_000 - more}) { IO::Buffer.map(file, 4096, 0, IO::Buffer::READONLY) }
        gate = Ringspun::Queue.new
        strands = Array.new(6000) { machine.spin { gate.pop } }
        machine.yield while gate.num_waiting < strands.count(&:alive?)
        gate.close
        puts strands.filter_map { |strand| strand.await && nil rescue $!.message[/and vm.*?:|neither.*/] }.uniq
      RUBY
      assert_equal "and vm.max_map_count is #{most}:\n", answer.out, answer.err
    end
  end

  def test_out_of_stacks
    answer = child(OUT_OF_STACKS, env: { "RUBY_FIBER_MACHINE_STACK_SIZE" => (16 << 20).to_s })
    assert_equal %w[true true true true true 10 1], answer.out.split, answer.err
    assert_predicate answer.status, :success?
  end

  # Room for one burst, not for the dead fibers of several, none of which can be used again; and objects are no reason to collect
  # them.
  def test_stacks_of_dead_fibers_are_taken_back
    roomy = (0..4).to_h { |size_class| ["RUBY_GC_HEAP_#{size_class}_INIT_SLOTS", "200000"] }
    answer = child(<<~RUBY, env: { "RUBY_FIBER_MACHINE_STACK_SIZE" => (8 << 20).to_s, **roomy })
      size = File.read("/proc/self/status")[/VmSize:\\s*(\\d+)/, 1].to_i * 1024
      Process.setrlimit(:AS, size + (6 << 30))
      8.times { machine.join(*Array.new(400) { machine.spin { machine.sleep(0.000_1).then { Fiber.current.instance_variable_set(:@used, 1) } } }) }
      puts machine.metrics[:idle_fibers]
    RUBY
    assert_equal "0\n", answer.out, answer.err
    assert_predicate answer.status, :success?
  end

  # Stacks that another machine keeps for strands to come are given back to who has none.
  def test_stacks_that_another_thread_keeps
    answer = child(<<~RUBY, env: { "RUBY_FIBER_MACHINE_STACK_SIZE" => (8 << 20).to_s })
      size = File.read("/proc/self/status")[/VmSize:\\s*(\\d+)/, 1].to_i * 1024
      Process.setrlimit(:AS, size + (5 << 30))
      crowd = lambda do
        own = Ringspun::Machine.current
        gate = Ringspun::Queue.new
        strands = Array.new(400) { own.spin { gate.pop } }
        own.yield while gate.num_waiting < 400
        gate.close
        own.join(*strands)
      end
      ready, go = Thread::Queue.new, Thread::Queue.new
      keeper = Thread.new { crowd.call.then { ready << 1 }.then { go.pop } }
      ready.pop
      crowd.call
      go << 1
      keeper.join
      puts "done"
    RUBY
    assert_equal "done\n", answer.out, answer.err
  end

  # --- memory ---

  def test_ended_strands_are_not_kept
    before = count_strands
    1000.times { machine.spin { Object.new }.join }
    assert_operator count_strands - before, :<, 100
  end

  # Of CRuby's slots the next one is twice as large. What the rooms keep for a strand lies in it as well.
  def test_a_handle_has_a_slot_of_320_bytes
    require "objspace"
    assert_match(/"slot_size":320\b/, ObjectSpace.dump(machine.spin { nil }.join))
  end

  def count_strands
    GC.start
    ObjectSpace.each_object(Ringspun::Strand).count
  end
end
