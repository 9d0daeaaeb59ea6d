# frozen_string_literal: true

require "test_helper"
require "timeout"
require "support/signals"

# What signals do to a run; simulated_signal_test.rb has those of a simulated one.
class SignalTest < Minitest::Test
  include Signals

  # --- the first one: everything unwinds, and the process ends by it ---

  %w[INT TERM].each do |signal|
    define_method("test_#{signal.downcase}_while_it_sleeps") do
      lines = ended_by(signal, <<~RUBY)
        at_exit { puts "at_exit" }
        Ringspun.run do |machine|
          2.times { |i| strand("strand \#{i}") { machine.sleep } }
          kill_when_asleep("#{signal}")
          machine.sleep
        ensure
          puts "block"
        end
        puts "never"
      RUBY
      assert_equal ["at_exit", "block", "strand 0", "strand 1"], lines.sort
      assert_equal "at_exit", lines.last
    end

    define_method("test_#{signal.downcase}_while_a_strand_runs") do
      lines = ended_by(signal, <<~RUBY)
        Ringspun.run do |machine|
          strand("sleeper") { machine.sleep }
          machine.yield
          kill_myself("#{signal}")
          10_000.times { |i| i * i }
          puts "computed to the end"
          machine.yield
          puts "never"
        end
      RUBY
      assert_equal ["computed to the end", "sleeper"], lines
    end
  end

  def test_int_during_input
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        reader, writer = machine.pipe
        strand("reader") { machine.read(reader, +"") }
        kill_when_asleep("INT")
        machine.poll(reader, 1)
      end
    RUBY
    assert_equal %w[reader], lines
  end

  # Whenever it comes: most of all between the last look for signals and the sleep, where its handler has run already.
  def test_a_handler_that_only_cancels_is_never_too_early
    assert_child "8000\n", <<~RUBY
      asked, ask = IO.pipe
      sender = fork do
        ask.close
        loop do
          came = asked.read_nonblock(1, exception: false)
          next if came == :wait_readable # it must be fast
          exit!(0) unless came

          Process.kill(:USR1, Process.ppid)
        end
      end
      scope = nil
      trap(:USR1) { scope.cancel }
      rounds = 0
      Ringspun.run do |machine|
        reader, writer = machine.pipe
        8000.times do |number|
          machine.scope do |one|
            scope = one
            ask.syswrite("x")
            (number % 60).times { nil }
            machine.read(reader, +"")
          end
          rounds += 1
        end
        [reader, writer].each { |descriptor| machine.close(descriptor) }
      end
      ask.close
      Process.wait(sender)
      puts rounds
    RUBY
  end

  def test_int_inside_nested_scopes_unwinds_from_the_inside
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        machine.scope do |outer|
          outer.spin { begin; machine.sleep; ensure; puts "outer strand"; end }
          machine.scope do |inner|
            inner.spin { begin; machine.sleep; ensure; puts "inner strand"; end }
            kill_when_asleep("INT")
            machine.sleep
          ensure
            puts "inner block"
          end
        ensure
          puts "outer block"
        end
      end
    RUBY
    assert_equal ["inner block", "inner strand", "outer block", "outer strand"], lines.sort
    assert_operator lines.index("inner strand"), :<, lines.index("outer block")
  end

  def test_int_waits_for_the_end_of_a_shield
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        Ringspun.shield(deadline: 5) do
          kill_myself("INT")
          3.times { machine.yield }
          puts "finished"
        end
        machine.yield
        puts "never"
      end
    RUBY
    assert_equal %w[finished], lines
  end

  def test_int_in_an_ensure_block_that_waits_under_a_shield
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        machine.yield
        kill_when_asleep("INT")
        machine.sleep
      ensure
        Ringspun.shield(deadline: 5) { machine.sleep(0.01) }
        puts "said goodbye"
      end
    RUBY
    assert_equal ["said goodbye"], lines
  end

  def test_int_when_the_block_has_ended_and_strands_go_on
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        strand("left over") { machine.sleep }
        kill_when_asleep("INT")
      end
    RUBY
    assert_equal ["left over"], lines
  end

  def test_int_in_a_nested_run
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        Ringspun.run do
          kill_when_asleep("INT")
          machine.sleep
        ensure
          puts "inner"
        end
      ensure
        puts "outer"
      end
    RUBY
    assert_equal %w[inner outer], lines
  end

  def test_int_can_be_rescued_outside_and_the_next_run_is_as_new
    assert_program "Interrupt 0\nInterrupt 1\nfine\n", <<~RUBY
      2.times do |i|
        Ringspun.run { |machine| kill_myself("INT").then { machine.sleep } }
      rescue Interrupt => error
        puts "\#{error.class} \#{i}"
      end
      Ringspun.run { |machine| machine.sleep(0.001).then { puts "fine" } }
    RUBY
  end

  def test_term_can_be_rescued_outside
    assert_program "SIGTERM true\n", <<~RUBY
      begin
        Ringspun.run { |machine| kill_myself("TERM").then { machine.sleep } }
      rescue SignalException => error
        puts "\#{error.message} \#{error.signo == Signal.list["TERM"]}"
      end
    RUBY
  end

  def test_an_error_while_it_unwinds
    answer = child(PRELUDE + <<~RUBY)
      Ringspun.run do |machine|
        strand("s") { begin; machine.sleep; ensure; raise "on the way out"; end }
        machine.yield
        kill_myself("INT")
        machine.sleep
      end
    RUBY
    assert_match(/on the way out/, answer.err)
    assert_equal Signal.list["INT"], answer.status.termsig, answer.err
  end

  # --- the second one ---

  def test_a_second_int_ends_a_strand_that_takes_no_notice
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        strand("stubborn") do
          machine.yield
          kill_myself("INT")
          begin
            machine.sleep
          rescue Ringspun::Cancelled
            puts "takes no notice"
            kill_myself("INT")
            loop { begin; machine.sleep; rescue Ringspun::Cancelled; end }
          end
        end
        machine.sleep
      end
    RUBY
    assert_equal ["takes no notice", "stubborn"], lines
  end

  def test_a_second_int_ends_an_ensure_block_that_blocks_the_thread
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        strand("stubborn") do
          machine.sleep
        ensure
          puts "blocks"
          kill_when_asleep("INT")
          Fiber.blocking { sleep }
        end
        machine.yield
        kill_myself("INT")
        machine.sleep
      end
    RUBY
    assert_equal %w[blocks stubborn], lines
  end

  # What a handler sends waits until it has returned: so both are there before the first is acted on.
  def test_int_and_term_at_once
    lines = ended_by("TERM", <<~RUBY)
      trap("USR1") { %w[INT TERM].each { |signal| kill_myself(signal) } }
      Ringspun.run do |machine|
        strand("unwound") { machine.sleep }
        machine.yield
        kill_when_asleep("USR1")
        machine.sleep
      ensure
        puts "root"
      end
    RUBY
    assert_equal %w[root unwound], lines.sort
  end

  # Nothing can reach into a shield, so there is nothing left but to end at once.
  def test_a_second_int_while_only_shields_are_left
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do |machine|
        strand("never") do
          machine.sleep
        ensure
          Ringspun.shield do
            puts "shielded"
            kill_when_asleep("INT")
            machine.sleep
          end
        end
        machine.yield
        kill_myself("INT")
        machine.sleep
      end
    RUBY
    assert_equal %w[shielded], lines
  end

  # --- handlers of the program's own ---

  # A handler runs wherever CRuby looks for signals, and a switch is such a place.
  def test_a_handler_that_uses_the_machine_while_it_switches
    assert_program "ended\n", <<~RUBY
      ran = refused = 0
      more, ask = IO.pipe
      trap("USR1") do
        Ringspun::Machine.current.yield
        ran += 1
      rescue Ringspun::UsageError
        refused += 1
      ensure # one at a time: CRuby runs handlers as long as there are signals
        ask.write_nonblock("\n")
      end
      Ringspun.run do |machine|
        killer = spawn("while read line; do kill -USR1 \#{$$}; done", in: more)
        ask.write_nonblock("\n")
        strands = Array.new(3) { machine.spin { machine.yield until ran + refused >= 20 } }
        machine.join(*strands)
        Process.kill("KILL", killer)
        Process.wait(killer)
      end
      puts "ended"
    RUBY
  end

  def test_a_throw_out_of_a_handler
    assert_program "1\n2\n3\nnil\n", <<~RUBY
      trap("USR1") { throw :out }
      machine = Ringspun::Machine.current
      3.times do |i|
        catch(:out) do
          kill_when_asleep("USR1")
          machine.sleep
        end
        puts i + 1
      end
      machine.sleep(0.001)
      p $!
    RUBY
  end

  def test_a_fork_in_a_handler_while_the_machine_sleeps
    assert_program "child: Ringspun::ClosedError\nparent: woken\n", <<~RUBY
      child = nil
      trap("USR1") { child = fork }
      machine = Ringspun::Machine.current
      strand = machine.spin do
        machine.park
      rescue Ringspun::ClosedError => error
        puts "child: \#{error.class}"
        exit!
      end
      wake_when_killed_asleep("USR1")
      woken = machine.park
      Process.wait(child)
      puts "parent: \#{woken}"
      machine.terminate(strand)
    RUBY
  end

  def test_a_handler_of_the_programs_own_stays
    assert_program "mine\nran on\nmine\ntrue\n", <<~RUBY
      handler = trap("INT") { puts "mine" } && trap("INT", mine = proc { puts "mine" }) && mine
      Ringspun.run do |machine|
        kill_myself("INT")
        machine.sleep(0.001)
        puts "ran on"
      end
      kill_myself("INT")
      puts trap("INT", "DEFAULT") == handler
    RUBY
  end

  def test_an_ignored_signal_stays_ignored
    assert_program "ran on\nIGNORE\n", <<~RUBY
      trap("TERM", "IGNORE")
      Ringspun.run do |machine|
        kill_myself("TERM")
        machine.sleep(0.001)
        puts "ran on"
      end
      puts trap("TERM", "DEFAULT")
    RUBY
  end

  def test_the_default_handlers_are_back_after_a_run
    assert_program %(["DEFAULT", "DEFAULT"]\n) * 2, <<~RUBY
      Ringspun.run {}
      p %w[INT TERM].map { |name| trap(name, "DEFAULT") }
      (Ringspun.run { raise "x" }) rescue nil
      p %w[INT TERM].map { |name| trap(name, "DEFAULT") }
    RUBY
  end

  def test_a_handler_that_the_program_sets_during_a_run_works_there
    assert_program "mine\n", <<~RUBY
      Ringspun.run do |machine|
        trap("INT") { puts "mine" }
        kill_myself("INT")
        machine.sleep(0.001)
      end
    RUBY
  end

  def test_other_signals_while_it_sleeps_run_their_handlers_and_nothing_else
    assert_program "handled\nwoken\n", <<~RUBY
      trap("USR1") { puts "handled" }
      Ringspun.run do |machine|
        wake_when_killed_asleep("USR1")
        puts machine.park
      end
    RUBY
  end

  def test_many_signals_while_strands_switch
    assert_program "1000\ntrue\n", <<~RUBY
      count = 0
      trap("USR1") { count += 1 }
      turns = Ringspun.run do |machine|
        strands = Array.new(10) { machine.spin { 100.times.count { kill_myself("USR1"); machine.yield; true } } }
        machine.await(*strands).sum
      end
      puts turns, count == 1000
    RUBY
  end

  def test_a_handler_that_raises_while_the_machine_sleeps_raises_in_the_root
    assert_program "root: from the handler\n", <<~RUBY
      trap("USR1") { raise "from the handler" }
      strands = Array.new(3) { machine.spin { begin; machine.sleep; rescue => error; puts "strand: \#{error.message}"; end } }
      machine.yield
      kill_when_asleep("USR1")
      begin
        machine.sleep
      rescue => error
        puts "root: \#{error.message}"
      end
    RUBY
  end

  def test_the_machine_is_refused_in_a_handler_that_runs_while_it_sleeps
    assert_program "Ringspun::UsageError\nwoken\n", <<~RUBY
      trap("USR1") { begin; machine.spin {}; rescue Ringspun::Error => error; puts error.class; end }
      wake_when_killed_asleep("USR1")
      puts machine.park
    RUBY
  end

  # --- without a run ---

  def test_int_without_a_run_goes_to_the_root
    assert_program "root\nfine\n", <<~RUBY
      strands = Array.new(5) { machine.spin { begin; machine.sleep(30); rescue Interrupt; puts "strand"; end } }
      machine.yield
      kill_when_asleep("INT")
      begin
        strands.first.join
      rescue Interrupt
        puts "root"
      end
      strands.each { |strand| machine.terminate(strand) }
      strands.each { |strand| strand.join rescue nil }
      puts "fine"
    RUBY
  end

  def test_int_while_the_root_holds_nothing_but_a_shield
    lines = ended_by("INT", <<~RUBY)
      Ringspun.shield do
        wake_when_killed_asleep("INT")
        machine.park
        puts "finished"
      end
      machine.yield
      puts "never"
    RUBY
    assert_equal %w[finished], lines
  end

  # --- other threads ---

  def test_a_run_on_another_thread_leaves_signals_alone
    lines = ended_by("INT", <<~RUBY)
      thread = Thread.new { Ringspun.run { |machine| machine.sleep } }
      Thread.pass until thread.status == "sleep"
      kill_when_asleep("INT")
      thread.join
    RUBY
    assert_empty lines
  end

  def sleeping_thread(seen, &block)
    thread = Thread.new(&block || proc do
      Ringspun.run do |machine|
        machine.spin do
          machine.sleep
        ensure
          seen << :strand
        end
        machine.sleep
      ensure
        seen << :block
      end
    ensure
      machine.close
      seen << :thread
    end)
    thread.report_on_exception = false
    Thread.pass until thread.status == "sleep"
    thread
  end

  def test_thread_raise_while_the_machine_sleeps
    seen = []
    thread = sleeping_thread(seen)
    thread.raise(Failure, "raised")
    assert_equal "raised", assert_raises(Failure) { thread.value }.message
    assert_equal %i[block strand thread], seen.sort
  end

  def test_thread_kill_while_the_machine_sleeps
    seen = []
    thread = sleeping_thread(seen)
    thread.kill
    assert_nil thread.value
    assert_equal false, thread.status
    assert_equal %i[block strand thread], seen.sort
  end

  def test_thread_kill_while_strands_switch
    seen = []
    theirs = nil
    thread = Thread.new do
      theirs = machine
      Ringspun.run do |machine|
        2.times do |i|
          machine.spin do
            loop { machine.yield }
          ensure
            seen << i
          end
        end
        loop { machine.yield }
      ensure
        seen << :block
      end
    ensure
      machine.close
    end
    Thread.pass until theirs && theirs.metrics[:resumes] > 100
    thread.kill
    thread.join
    assert_equal false, thread.status
    assert_equal [0, 1, :block], seen.sort_by(&:to_s)
  end

  # It hits whichever strand runs, and its scope carries it on.
  def test_thread_raise_while_strands_switch
    5.times do
      turns = 0
      thread = Thread.new do
        Ringspun.scope do |scope|
          3.times { scope.spin { loop { machine.yield.then { turns += 1 } } } }
          loop { machine.yield }
        end
      ensure
        machine.close
      end
      thread.report_on_exception = false
      Thread.pass until turns > 100
      thread.raise(Failure)
      assert_raises(Failure) { thread.value }
    end
  end

  def test_a_strand_kills_its_thread
    seen = []
    thread = Thread.new do
      machine.spin do
        Thread.exit
      ensure
        seen << :strand
      end
      machine.sleep(5)
      seen << :never
    ensure
      machine.close
      seen << :root
    end
    thread.join
    assert_equal %i[strand root], seen
  end

  def test_timeout_around_a_run
    seen = []
    assert_raises(::Timeout::Error) do
      ::Timeout.timeout(0.02) do
        Ringspun.run do |machine|
          machine.spin do
            machine.sleep
          ensure
            seen << :strand
          end
          machine.sleep
        ensure
          seen << :block
        end
      end
    end
    assert_equal %i[block strand], seen.sort
    assert_equal(5, Ringspun.run { |machine| machine.sleep(0.000_1).then { 5 } })
  end

  def test_timeout_around_a_busy_run
    assert_raises(::Timeout::Error) do
      ::Timeout.timeout(0.02) { Ringspun.run { |machine| machine.spin { loop { machine.yield } }.join } }
    end
    assert_equal 1, machine.metrics[:strands_live]
  end
end
