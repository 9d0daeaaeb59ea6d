# frozen_string_literal: true

require_relative "select_case"

# Ringspun::Selector, made once and waited in many times; turns, cancellations, and what is left behind.
class SelectorTest < SelectCase
  # --- one for many waits ---

  def test_it_is_waited_in_again_and_again
    queues = Array.new(4) { queue }
    with_selector do |selector|
      queues.each_with_index { |one, i| selector.pop(one) { |item| [i, item] } }
      assert_equal 4, selector.size
      feeder = machine.spin { 12.times { |i| queues[i % 4].push(i) && machine.yield } }
      assert_equal Array.new(12) { |i| [i % 4, i] }, Array.new(12) { selector.wait }
      feeder.join
    end
  end

  def test_sources_come_and_go
    one, two = queue(1, 2), queue(:two)
    with_selector do |selector|
      selector.pop(one)
      assert_equal 1, selector.wait
      assert selector.delete(one)
      refute selector.delete(one)
      assert_nil selector.pop(two).wait.then { selector.wait(timeout: 0) }
      assert_equal [2, 1], [selector.pop(one).wait, selector.size - 1]
    end
  end

  def test_one_that_comes_while_a_strand_waits
    one = queue
    with_selector do |selector|
      strand = parked { selector.pop(one).wait }
      selector.pop(queue(:late))
      assert_equal :late, strand.await
    end
  end

  def test_one_that_goes_while_a_strand_waits
    one, two = queue, queue
    with_selector do |selector|
      strand = parked { selector.pop(one).pop(two).wait }
      selector.delete(one)
      one.push(1)
      two.push(2)
      assert_equal [2, 1], [strand.await, one.size]
    end
  end

  def test_what_is_on_its_way_arrives_although_its_source_is_deleted_or_the_selector_closed
    %i[delete close].each do |ending|
      one = queue
      selector = Ringspun::Selector.new
      strand = parked { selector.pop(one) { |item| [item] }.wait }
      one.push(:item)
      ending == :close ? selector.close : selector.delete(one)
      GC.start
      assert_equal [:item], strand.await, ending
      selector.close
    end
  end

  def test_a_block_may_change_the_selector
    one = queue(1, 2)
    with_selector do |selector|
      selector.pop(one) { |item| selector.delete(one) && item }
      assert_equal 1, selector.wait
      assert_raises(Ringspun::UsageError) { selector.wait }
    end
  end

  def test_closing
    one = queue
    selector = Ringspun::Selector.new { |on| on.pop(one) }
    strand = parked { selector.wait }
    refute_predicate selector, :closed?
    assert_nil selector.close
    assert_nil selector.close
    assert_predicate selector, :closed?
    assert_ends_with Ringspun::ClosedError, strand
    assert_raises(Ringspun::ClosedError) { selector.wait }
    assert_raises(Ringspun::ClosedError) { selector.pop(one) }
    assert_equal 1, one.push(1).pop
  end

  # A wait that finds something at once lets the others run now and then, and those may close it.
  def test_one_that_is_closed_while_a_strand_that_uses_it_has_given_way
    one = queue(*Array.new(1000, 1))
    selector = Ringspun::Selector.new { |on| on.pop(one) }
    closer = machine.spin { selector.close }
    assert_raises(Ringspun::ClosedError) { 1000.times { selector.wait } }
    refute_empty one
    closer.join
  end

  def test_one_strand_at_a_time
    with_selector do |selector|
      strand = parked { selector.after(60).wait }
      assert_match(/another strand waits/, assert_raises(Ringspun::UsageError) { selector.wait }.message)
      machine.terminate(strand)
      error_of { strand.join }
      assert_nil selector.wait(timeout: 0)
    end
  end

  def test_copies_are_refused
    with_selector { |selector| assert_raises(Ringspun::UsageError) { selector.dup } }
  end

  # --- turns ---

  def test_a_busy_source_does_not_starve_another
    busy, rare = queue(*(1..100)), queue(*(1..3))
    taken = with_selector do |selector|
      selector.pop(busy) { :busy }.pop(rare) { :rare }
      Array.new(6) { selector.wait }
    end
    assert_equal({ busy: 3, rare: 3 }, taken.tally)
  end

  def test_one_that_is_fed_all_the_time_does_not_starve_another
    busy, rare = queue, queue
    with_selector do |selector|
      selector.pop(busy) { busy.push(1) && :busy }.pop(rare) { :rare }
      busy.push(1)
      selector.wait
      rare.push(1)
      assert_includes Array.new(2) { selector.wait }, :rare
    end
  end

  # Where each call begins anywhere.
  def test_every_source_of_a_select_wins_now_and_then
    queues = Array.new(4) { queue(*Array.new(300, 1)) }
    winners = Array.new(200) { queues.index(select(*queues).first) }
    assert_equal [0, 1, 2, 3], winners.uniq.sort
  end

  def test_who_has_waited_longest_is_served_first_however_it_waits
    one = queue
    order = []
    strands = Array.new(6) { |i| parked { order << [i, i.even? ? one.pop : select(one).last] } }
    6.times { |item| one.push(item) }
    machine.join(*strands)
    assert_equal Array.new(6) { |i| [i, i] }, order
  end

  def test_pushers_get_places_in_their_order_however_they_wait
    sized = Ringspun::SizedQueue.new(1).push(:first)
    strands = Array.new(4) { |i| parked { i.even? ? sized.push(i) : select { |on| on.push(sized, i) } } }
    assert_equal [:first, 0, 1, 2, 3], Array.new(5) { sized.pop }
    machine.join(*strands)
  end

  # --- cancellation and time: nothing is lost, and nothing is left ---

  def test_a_cancelled_one_takes_nothing
    one, two = queue, queue
    strand = parked { select(one, two) }
    machine.terminate(strand)
    one.push(1)
    two.push(2)
    assert_kind_of Ringspun::TerminatedError, error_of { strand.join }
    assert_equal [1, 2], [one.pop(true), two.pop(true)]
  end

  def test_what_was_handed_over_before_the_cancellation_is_the_strands
    one = queue
    got = nil
    strand = parked { (got = select(one)) && machine.sleep }
    one.push(:item)
    machine.terminate(strand)
    error_of { strand.join }
    assert_equal [one, :item], got
  end

  def test_two_sources_in_the_same_pass
    one, two = queue, queue
    first, second = parked { select(one, two) }, parked { select(two, one) }
    [one, two].each { |each| each.push(:item) }
    assert_equal [[one, :item], [two, :item]], [first.await, second.await]
    strand = parked { select(one, two) }
    [one, two].each { |each| each.push(each) }
    assert_equal [one, one], strand.await
    assert_equal [0, 1], [one.size, two.size]
  end

  # The time is up and the item is there before the strand runs.
  def test_an_item_at_the_instant_of_the_timeout
    20.times do |i|
      one = queue
      strand = machine.spin { select(one, timeout: 0.000_2) }
      pusher = machine.spin { machine.sleep(0.000_2) && one.push(i) }
      machine.join(pusher, strand)
      assert_equal [i], [strand.await&.last, one.empty? ? nil : one.pop].compact
    end
  end

  def test_scopes_and_deadlines_end_it
    one = queue
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.000_1) { select(one, queue) } }
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.000_1) { Ringspun::Selector.new { |on| on.pop(one) }.wait } }
    one.push(1)
    assert_equal 1, one.pop
  end

  def test_a_selector_is_used_again_after_a_cancellation
    one = queue
    with_selector do |selector|
      selector.pop(one)
      2.times { assert_raises(Ringspun::TimeoutError) { machine.timeout(0.000_1) { selector.wait } } }
      one.push(5)
      assert_equal 5, selector.wait
    end
  end

  def test_an_error_of_the_block_leaves_nothing
    one = queue
    assert_raises(Failure) { select { |on| on.pop(one) && raise(Failure) } }
    assert_raises(Failure) { select { |on| on.pop(one.push(1)) { raise Failure } } }
    assert_equal 2, one.push(2).pop
  end

  # --- collections ---

  def test_selectors_and_sources_that_nobody_keeps
    GC.stress = false
    kept = queue
    300.times do |i|
      selector = Ringspun::Selector.new { |on| on.pop(kept).pop(queue).result(begun { i }) }
      GC.start if (i % 100).zero?
      selector.close if i.odd?
    end
    GC.start
    kept.push(1)
    assert_equal 1, kept.pop
  end

  # They leave the sources after those may have been moved elsewhere.
  def test_selectors_that_are_collected_while_their_sources_move
    GC.stress = false
    gate = queue
    evaluations = Array.new(50) { begun { gate.pop } }
    5.times do
      evaluations.each { |each| Ringspun::Selector.new { |on| on.result(each).pop(gate) } }
      GC.respond_to?(:compact) ? GC.compact : GC.start
    end
    50.times { |i| gate.push(i) }
    assert_equal Array.new(50) { |i| i }, evaluations.map(&:await_result)
  end

  def test_what_a_selector_waits_for_survives_collections
    selector = Ringspun::Selector.new { |on| 10.times { |i| on.pop(queue("item #{i}")) { |item| item + "!" } } }
    GC.start
    GC.compact if GC.respond_to?(:compact)
    assert_equal Array.new(10) { |i| "item #{i}!" }, Array.new(10) { selector.wait }.sort
    selector.close
  end

  # --- the end of machines ---

  def test_a_machine_closes_its_selectors
    on_thread { @left = Ringspun::Selector.new { |on| on.pop(queue) } }
    assert_predicate @left, :closed?
    assert_nil @left.close
    @left = nil
  end

  def test_threads_that_end_without_closing_their_machine
    assert_child "", "5.times { Thread.new { Ringspun::Selector.new { |on| on.pop(Ringspun::Queue.new) } }.join; GC.start }"
  end

  # A malloc that overwrites what is freed: https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html
  OVERWRITES_FREED = { "GLIBC_TUNABLES" => "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0" }.freeze

  # In the child the selector has a branch that was deleted when it had an item for a strand of the parent, and another one that
  # has an item for a strand of the child.
  def test_a_forked_child_closes_a_selector_by_which_an_item_is_on_its_way
    assert_child "[:child, 2]\n[:parent, 1]\n", <<~RUBY, env: OVERWRITES_FREED
      deleted, queue = Ringspun::Queue.new, Ringspun::Queue.new
      selector = Ringspun::Selector.new { |on| on.pop(deleted) { |item| [:parent, item] } }
      waiter = machine.spin { selector.wait }
      machine.yield
      deleted.push(1)
      selector.delete(deleted)
      child = fork do
        selector.pop(queue) { |item| [:child, item] }
        machine.spin { queue.push(2) && selector.close }
        p selector.wait
      end
      Process.wait(child)
      p waiter.await
    RUBY
  end

  # --- at random ---

  # Each item once, whoever takes it, and who is cancelled takes none.
  def test_a_storm
    GC.stress = false
    random = Random.new(42)
    queues = Array.new(5) { |i| i.even? ? Ringspun::Queue.new : Ringspun::SizedQueue.new(2) }
    taken, pushed = [], []
    machine.scope do |scope|
      consumers = Array.new(8) { |i| scope.spin { consume(queues.rotate(i), taken, i) } }
      producers = Array.new(6) { |i| scope.spin { produce(queues.rotate(i), pushed, Random.new(i), i) } }
      victims = Array.new(40) do
        scope.spin { (item = select(*queues.sample(3, random:), timeout: random.rand * 0.002)) && taken << item.last }
      end
      victims.each { |victim| machine.terminate(victim) if random.rand < 0.5 && machine.sleep(random.rand * 0.000_2) }
      producers.each { |each| each.join }
      queues.each(&:close)
      consumers.each(&:join)
    end
    assert_equal pushed.sort, taken.compact.sort
    assert_equal 600, pushed.size
  end

  def consume(queues, taken, number)
    if number.even?
      selector = Ringspun::Selector.new { |on| queues.each { |one| on.pop(one) { |item| [one, item] } } }
      while selector.size.positive?
        one, item = selector.wait
        item ? taken << item : selector.delete(one)
      end
    else
      queues.each { |one| while (item = one.pop) do taken << item end }
    end
  end

  def produce(queues, pushed, random, number)
    100.times do |i|
      item = (number * 1000) + i + 1
      select { |on| queues.sample(2, random:).each { |one| on.push(one, item) } }
      pushed << item
      machine.yield if random.rand < 0.3
    end
  end
end

class SelectorOnSimulationTest < SelectorTest
  include OnSimulation
end
