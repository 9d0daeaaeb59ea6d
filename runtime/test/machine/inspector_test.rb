# frozen_string_literal: true

require "test_helper"
require "support/strands"
require "logger"
require "stringio"

# What Ringspun::Inspector shows. Its watch is in inspector_watch_test.rb, deadlock reports in deadlock_test.rb.
class InspectorTest < Minitest::Test
  include Strands

  def inspector = Ringspun::Inspector

  def locating
    machine.locate = true
    yield
  ensure
    machine.locate = false
  end

  def lines = machine.describe_strands.lines(chomp: true)

  def line_of(strand) = lines.find { |line| line.include?(strand.inspect[/0x\h+/]) }

  # --- the tree ---

  def test_strands_stand_below_the_owner_of_their_scope
    outer = inner = beside = nil
    Ringspun.run do |machine|
      outer = machine.spin { machine.scope { |scope| inner = scope.spin { machine.park } } }
      beside = machine.spin { machine.park }
      until_parked(outer, beside)
      until_parked(inner)
      found = lines
      assert_equal [2, 4, 4, 4, 6], found.map { |line| line[/\A */].size }.sort
      assert_equal [6, 4], [inner, beside].map { |strand| line_of(strand)[/\A */].size }
      assert_equal found.index(line_of(outer)) + 1, found.index(line_of(inner))
      [inner, beside].each { |strand| machine.schedule(strand) }
    end
  end

  def test_the_machine_stands_above_its_strands
    strand = parked { machine.park }
    title, root, *rest = Ringspun.inspect_tree.lines(chomp: true)
    assert_equal "#{machine.inspect} on #{Thread.current.inspect}", title
    assert_equal "  #{machine.running.inspect}: running", root
    assert_equal ["    #{strand.inspect}: waits for Machine#schedule"], rest
    assert_equal Ringspun.inspect_tree, inspector.new.tree
    machine.schedule(strand)
    strand.join
  end

  def test_a_strand_shows_its_name
    strand = parked { machine.park }
    assert_nil strand.name
    strand.name = what = [1]
    what << 2 # it is asked anew
    assert_equal "[1, 2]", strand.name
    assert_match(/\A *#<Ringspun::Strand:0x\h+ parked "\[1, 2\]">: waits for Machine#schedule\z/, line_of(strand))
    machine.schedule(strand)
    strand.join
    assert_match(/ done "\[1, 2\]">\z/, strand.inspect)
  end

  def test_machines_of_all_threads
    ready, done = Array.new(2) { Thread::Queue.new }
    thread = Thread.new do
      strand = machine.spin { machine.park }
      machine.yield
      ready << strand
      done.pop
      machine.schedule(strand)
      strand.join
      machine.close
    end
    strand = ready.pop
    tree = Ringspun.inspect_tree
    done << true
    thread.join
    assert_equal 2, tree.scan(/^#<Ringspun::Machine/).size
    assert_match(/^    #{Regexp.escape(strand.inspect[/.*0x\h+/])} parked>: waits for Machine#schedule$/, tree)
    refute_includes Ringspun.inspect_tree, strand.inspect[/0x\h+/]
  end

  def test_without_a_machine
    assert_child "no machine is open\n#<Ringspun::Machine closed>\n", <<~RUBY
      print Ringspun.inspect_tree
      closed = machine.tap(&:close)
      print Ringspun::Inspector.new(closed).tree
    RUBY
  end

  def test_ready_and_new_strands_are_there_too
    strand = machine.spin {}
    assert_match(/: new$/, line_of(strand))
    strand.join
    assert_nil line_of(strand)
  end

  def test_fiber_schedule_is_a_strand_like_any_other
    locating do
      Ringspun.run do
        waiting = Thread::Queue.new
        Fiber.schedule { waiting.pop }
        spun = "spun at #{__FILE__}:#{__LINE__ - 1}:"
        strand = machine.strands.find { |each| each.waits_for == "a Thread::Queue" }
        assert_match(/\A    #<\S+ parked> #{Regexp.escape(spun)}.*: waits for a Thread::Queue, for \d+\.\d{3} s\z/,
                     line_of(strand))
        waiting << 1
      end
    end
  end

  # Its lines do not grow without end.
  def test_a_deep_tree
    depth = 45
    GC.stress = false # under which so many strands take ages
    deepest = nil
    nest = ->(left) { machine.scope { |scope| left.zero? ? machine.park : deepest = scope.spin { nest.(left - 1) } } }
    top = machine.spin { nest.(depth) }
    yield_until { machine.strands.size == depth + 2 && deepest.state == :parked }
    assert_equal depth + 2, lines.size
    assert_operator lines.map(&:size).max, :<, 300
    machine.schedule(deepest)
    top.join
  end

  # --- who and how long ---

  def test_owner
    Ringspun.run do |machine|
      block = machine.running
      root = block.owner
      assert_nil root.owner
      strand = machine.spin { machine.scope { |scope| scope.spin { machine.park }.tap { machine.yield } } }
      child = nil
      yield_until { child = machine.strands.find { |each| each.owner == strand } }
      assert_equal [root, strand], [strand.owner, child.owner]
      machine.schedule(child)
      strand.join
      assert_equal [nil, nil], [strand.owner, child.owner]
    end
  end

  def test_waited_in_virtual_time
    seen = []
    simulate do |machine|
      strand = machine.spin { 2.times { machine.park } }
      machine.sleep(5)
      seen << strand.waited << machine.describe_strands[/waits for Machine#schedule.*/]
      machine.schedule(strand)
      seen << strand.waited
      machine.sleep(1.5)
      seen << strand.waited
      machine.schedule(strand)
      strand.join
      seen << strand.waited
    end
    assert_equal "waits for Machine#schedule, for 5.000 s", seen.delete_at(1)
    assert_equal([5.0, nil, 1.5, nil], seen.map { |seconds| seconds&.round(6) })
  end

  def test_waited_is_known_while_locating_only
    strand = parked { 3.times { machine.park } }
    assert_nil strand.waited
    locating { assert_nil strand.waited }
    locating do
      again(strand)
      assert_kind_of Float, strand.waited
      assert_operator strand.waited, :>=, 0
      assert_nil machine.running.waited
    end
    assert_nil strand.waited
    again(strand)
    locating { assert_nil strand.waited }
    machine.schedule(strand)
    strand.join
  end

  def again(strand)
    machine.schedule(strand)
    assert_nil strand.waited
    until_parked(strand)
  end

  # --- numbers ---

  def test_metrics
    strand = parked { machine.park }
    fresh = machine.spin {}
    metrics = inspector.new.metrics
    assert_equal machine.backend.name, metrics[:backend]
    assert_equal({ new: 1, ready: 0, running: 1, parked: 1 }, metrics[:strands])
    assert_equal machine.metrics, metrics.except(:backend, :strands)
    assert_equal metrics.keys.to_set, inspector.new.metrics.keys.to_set
    machine.schedule(strand)
    machine.join(strand, fresh)
  end

  def test_metrics_of_a_closed_machine
    closed = on_thread { machine }
    metrics = inspector.new(closed).metrics
    assert_equal [nil, 0], [metrics[:backend], metrics[:strands].values.sum]
    assert_includes inspector.new(closed).prometheus, "backend=\"closed\""
  end

  # name => [type, { labels => value }], after the rules of the format.
  def parsed(text)
    GC.stress = false # for what only the tests do, and takes them ages under it
    assert text.end_with?("\n")
    text.split(/^(?=# HELP )/).to_h do |family|
      help, type, *samples = family.lines(chomp: true)
      name = help[/\A# HELP (ringspun_[a-z_]+) \S.*\z/, 1]
      kind = type[/\A# TYPE #{name} (counter|gauge)\z/, 1]
      assert name && kind, family
      assert_equal kind == "counter", name.end_with?("_total"), name
      [name, [kind, samples.to_h { |line| sample(name, line) }]]
    end
  end

  def sample(name, line)
    match = line.match(/\A#{name}\{((?:[a-z]+="(?:[^"\\]|\\["\\n])*",?)*)\} (\d+)\z/)
    assert match, line
    [match[1], Integer(match[2])]
  end

  def test_prometheus_has_every_metric
    text = inspector.new.prometheus
    metrics = machine.metrics
    families = parsed(text)
    assert_equal text.scan(/^# HELP (\S+)/).flatten.uniq.size, text.scan(/^# HELP/).size
    metrics.each_key do |key|
      kind, samples = families["ringspun_#{key}_total"] || families["ringspun_#{key}"]
      assert kind, "no #{key}"
      assert_equal ["backend=\"#{machine.backend.name}\",machine=\"#{machine.object_id}\""], samples.keys
    end
    assert_equal machine.metrics[:resumes], families["ringspun_resumes_total"].last.values.first
    assert_equal metrics.size + 1, families.size
  end

  def test_prometheus_has_the_states
    strand = parked { machine.park }
    samples = parsed(inspector.new.prometheus)["ringspun_strands"].last
    assert_equal({ "new" => 0, "ready" => 0, "running" => 1, "parked" => 1 },
                 samples.transform_keys { |labels| labels[/state="(\w+)"/, 1] })
    machine.schedule(strand)
    strand.join
  end

  def test_prometheus_of_all_machines
    ready, done = Array.new(2) { Thread::Queue.new }
    thread = Thread.new do
      ready << machine
      done.pop
      machine.close
    end
    thread.name = "a \"quoted\\ \nname"
    other = ready.pop
    families = parsed(inspector.prometheus)
    done << true
    thread.join
    families.each do |name, (_kind, samples)|
      assert_equal [machine, other].map { |each| each.object_id.to_s }.sort,
                   samples.keys.map { |labels| labels[/machine="(\d+)"/, 1] }.uniq.sort, name
    end
    assert_includes families["ringspun_polls_total"].last.keys.join, 'thread="a \"quoted\\\\ \nname"'
    assert_equal 1, parsed(inspector.prometheus)["ringspun_polls_total"].last.size
  end

  # --- signals ---

  # A $stderr that hands on what is written.
  Sink = Struct.new(:told) do
    def write(text) = told.call(text)
  end

  def trapping(told)
    before = $stderr
    $stderr = Sink.new(told)
    inspector.trap("USR2")
    yield
  ensure
    inspector.untrap("USR2")
    $stderr = before
  end

  def test_a_signal_while_a_strand_is_busy
    tree = nil
    strand = machine.spin { Process.kill(:USR2, Process.pid).then { nil until tree } }
    trapping(->(text) { tree = text }) { strand.join }
    assert_match(/^    #{Regexp.escape(strand.inspect[/.*0x\h+/])} running>: running$/, tree)
    assert_match(/^  #<\S+ parked>: waits for a strand to end$/, tree)
  end

  def test_a_signal_while_the_machine_sleeps
    mine = machine
    tree = nil
    strand = parked { machine.park }
    trapping(->(text) { (tree = text) && mine.schedule(strand) }) do
      sender = Thread.new do
        Thread.pass until mine.__send__(:asleep?)
        Process.kill(:USR2, Process.pid)
      end
      strand.join
      sender.join
    end
    assert_match(/^    #{Regexp.escape(strand.inspect[/.*0x\h+/])} parked>: waits for Machine#schedule$/, tree)
  end

  def test_a_signal_under_the_scheduler_makes_nobody_wait
    assert_child "[3, 0]\n", <<~'RUBY'
      reader, writer = IO.pipe
      $stderr.reopen(writer)
      Ringspun::Inspector.trap(:SIGUSR2)
      Ringspun.run do
        resumes = machine.metrics[:resumes]
        Process.kill(:USR2, $$)
        nil until reader.read_nonblock(1, exception: false) == "#"
        p [reader.read_nonblock(1000).lines.size, machine.metrics[:resumes] - resumes]
      end
    RUBY
  end

  # Whose lock Ruby has meanwhile: a thread that wants it twice gets a ThreadError.
  def test_a_signal_while_a_strand_writes_to_the_same_output
    answer = ruby_child(<<~'RUBY')
      signalling = Module.new do
        def io_write(...) = Process.kill(:USR2, $$).then { super }
      end
      Ringspun::Scheduler.prepend(signalling)
      Ringspun::Inspector.trap(:USR2)
      Ringspun.run { $stderr.write("written\n") }
    RUBY
    assert_predicate answer.status, :success?, answer.err
    assert_match(/^#<Ringspun::Machine.*^written$/m, answer.err)
  end

  def test_what_cannot_be_printed_hurts_nobody
    calls = 0
    trapping(->(_text) { (calls += 1) && raise(Errno::EPIPE) }) do
      machine.spin { Process.kill(:USR2, Process.pid).then { nil until calls == 1 } }.join
    end
    assert_equal 1, calls
  end

  def test_untrap_gives_back_what_was_there
    own = proc {}
    before = trap("USR2", own)
    assert_nil inspector.trap("USR2")
    assert_nil inspector.trap(:SIGUSR2) # again is once
    assert_equal true, inspector.untrap(Signal.list.fetch("USR2"))
    assert_equal false, inspector.untrap("USR2")
    assert_same own, trap("USR2", before)
  end

  def test_untrap_leaves_a_later_handler
    later = proc {}
    before = trap("USR2", "DEFAULT")
    inspector.trap("USR2")
    trap("USR2", later)
    assert_equal false, inspector.untrap("USR2")
    assert_same later, trap("USR2", before)
  end

  def test_signals_that_cannot_be
    { "NOPE" => /no signal "NOPE".*"USR2"/, nil => /no signal nil/, 4711 => /no signal 4711/, "EXIT" => /no signal "EXIT"/,
      "KILL" => /SIGKILL cannot be trapped/, "SEGV" => /SIGSEGV cannot be trapped/ }.each do |signal, pattern|
      assert_match pattern, assert_raises(Ringspun::UsageError) { inspector.trap(signal) }.message
    end
    assert_raises(Ringspun::UsageError) { inspector.untrap("NOPE") }
    assert_equal false, inspector.untrap("KILL")
  end

  # --- the rest ---

  def test_only_machines_are_inspected
    assert_match(/expected a Ringspun::Machine, got Integer: 1/, assert_raises(Ringspun::UsageError) { inspector.new(1) }.message)
    assert_equal [machine, "#<Ringspun::Inspector of #{machine.inspect}>"], [inspector.new.machine, inspector.new.inspect]
  end

  def test_in_a_ractor
    assert_child "[2, true, 1, true, true]\nSIGUSR2 is for the main ractor\n", <<~'RUBY'
      Warning[:experimental] = false
      machine.locate = true # of another ractor: not to be seen there
      ractor = Ractor.new do
        Ringspun.run do |machine|
          watch = Ringspun::Inspector.watch(limit: 30, to: $stderr)
          text = Ringspun::Inspector.prometheus
          error = begin Ringspun::Inspector.trap("USR2") rescue $! end
          watch.stop
          [Ringspun.inspect_tree.scan("Strand").size, watch.stopped?, text.scan("ringspun_polls_total{").size,
           error.is_a?(Ringspun::UsageError), machine.describe_strands.lines.size == 2]
        end
      end
      p(ractor.respond_to?(:value) ? ractor.value : ractor.take)
      puts "SIGUSR2 is for the main ractor"
    RUBY
  end
end
