# frozen_string_literal: true

require "test_helper"
require "support/preloaded"
require "support/strands"

# When nothing runs and nothing can wake anybody. In processes of their own, because the tests' process has other threads;
# simulated deadlocks are in simulation_test.rb.
class DeadlockTest < Minitest::Test
  include Strands

  def test_the_report_names_every_strand_and_what_it_waits_for
    answer = child(<<~RUBY)
      machine.locate = true
      first, second = Array.new(2) { Ringspun::Mutex.new }
      one = machine.spin { first.synchronize { machine.yield.then { second.synchronize {} } } }
      two = machine.spin { second.synchronize { machine.yield.then { first.synchronize {} } } }
      parked = machine.spin { machine.park }
      begin
        machine.join(one, two, parked)
      rescue Ringspun::DeadlockError => error
        puts error.message
        puts [one, two, parked].all? { |strand| error.message.include?(strand.inspect[/0x\\h+/]) }
      end
      [one, two, parked].each { |strand| machine.terminate(strand) }
    RUBY
    lines = answer.out.lines(chomp: true)
    assert_match(/nothing runs/, lines.shift)
    assert_equal "true", lines.pop
    assert_equal 4, lines.size, answer.out
    assert_equal 2, lines.grep(/an item of a Queue|a Mutex/).size
    assert_equal 1, lines.grep(/Machine#schedule/).size
    assert_equal 1, lines.grep(/a strand to end/).size
    assert_equal 3, lines.grep(/spun at -e:\d+/).size
  end

  # One for each way to wait that a whole program may end in, on what Ruby has and on what Ringspun has.
  def test_the_report_is_the_tree_and_names_stock_locks_and_queues
    answer = child(<<~RUBY)
      machine.locate = true
      begin
        Ringspun.run do |machine|
          lock, taken, condition = Thread::Mutex.new, Thread::Mutex.new, Thread::ConditionVariable.new
          full = Thread::SizedQueue.new(1).push(1)
          holder = machine.spin { taken.synchronize { Thread::Queue.new.pop } }
          machine.spin { taken.lock }
          machine.spin { lock.synchronize { condition.wait(lock) } }
          machine.spin { full.push(2) }
          machine.spin { Ringspun::Queue.new.pop }
          Fiber.schedule { Thread::Queue.new.pop }
          holder.await
        end
      rescue Ringspun::DeadlockError => error
        puts error.message
      end
    RUBY
    lines = answer.out.lines(chomp: true)
    assert_match(/nothing runs/, lines.shift, answer.err)
    assert_empty lines.grep_v(/\A  (  )?#<Ringspun::Strand:0x\h+ parked>( spun at -e:\d+:.*)?: waits for .*, for \d+\.\d{3} s\z/)
    waits = lines.map { |line| line[/waits for (.*), for/, 1] }
    assert_equal ["a ConditionVariable, or a time to pass", "a Thread::Mutex", "a Thread::Queue", "a Thread::Queue",
                  "a Thread::SizedQueue", "a strand to end", "a strand to end", "an item of a Queue"], waits.sort
  end

  def test_everything_unwinds_and_the_error_leaves_the_run
    answer = child(<<~RUBY)
      Ringspun.run do |machine|
        queue = Ringspun::Queue.new
        machine.spin { begin; queue.pop; ensure; puts "strand"; end }
        begin
          queue.pop
        ensure
          puts "block"
        end
      end
    RUBY
    assert_equal %w[block strand], answer.out.lines(chomp: true).sort
    assert_match(/DeadlockError/, answer.err)
    assert_equal 1, answer.status.exitstatus
  end

  def test_it_can_be_rescued_and_the_machine_goes_on
    assert_child "0\n1\nfine\n", <<~RUBY
      2.times do |i|
        Ringspun.run { Ringspun::Queue.new.pop }
      rescue Ringspun::DeadlockError
        puts i
      end
      machine.sleep(0.001)
      puts machine.spin { "fine" }.await
    RUBY
  end

  def test_shields_do_not_help
    assert_child "unwound\nDeadlockError\n", <<~RUBY
      begin
        Ringspun.run { Ringspun.shield { begin; Ringspun::Queue.new.pop; ensure; puts "unwound"; end } }
      rescue Ringspun::DeadlockError
        puts "DeadlockError"
      end
    RUBY
  end

  def test_two_strands_that_wait_for_each_other
    assert_child "DeadlockError\n", <<~RUBY
      one = machine.spin { @two.await }
      @two = machine.spin { one.await }
      begin
        one.join
      rescue Ringspun::DeadlockError
        puts "DeadlockError"
      end
    RUBY
  end

  def test_the_root_alone
    assert_child "DeadlockError\n", <<~RUBY
      begin
        machine.park
      rescue Ringspun::DeadlockError
        puts "DeadlockError"
      end
    RUBY
  end

  def test_a_timer_is_hope
    assert_child "TimeoutError\n", <<~RUBY
      begin
        machine.park(0.05)
      rescue Ringspun::TimeoutError
        puts "TimeoutError"
      end
    RUBY
  end

  def test_an_op_is_hope
    assert_child "x\n", <<~'RUBY'
      reader, writer = IO.pipe
      spawn("sleep 0.05; echo x", out: writer)
      writer.close
      strand = machine.spin { machine.read(reader, bytes = +"").then { bytes } }
      puts strand.await
    RUBY
  end

  # Woken by its condition, one waits for the mutex again, which another holds that will never be woken.
  def test_a_condition_whose_mutex_does_not_come_back
    answer = child(<<~RUBY)
      Ringspun.run do |machine|
        mutex, condition = Ringspun::Mutex.new, Ringspun::Condition.new
        machine.spin do
          mutex.synchronize { begin; condition.wait(mutex); ensure; puts "waiter has it: \#{mutex.owned?}"; end }
        end
        machine.spin do
          mutex.lock
          condition.signal
          Ringspun.shield { Ringspun::Queue.new.pop }
        ensure
          puts "holder"
        end
      end
    RUBY
    assert_equal ["holder", "waiter has it: true"], answer.out.lines(chomp: true)
    assert_match(/DeadlockError/, answer.err)
    assert_equal 1, answer.status.exitstatus
  end

  # The holder waits for the waiter: one of them must give in.
  def test_a_condition_whose_mutex_is_held_by_who_waits_for_it
    assert_child "waiter has it: false\nroot\n", <<~RUBY
      mutex, condition = Ringspun::Mutex.new, Ringspun::Condition.new
      waiter = machine.spin do
        mutex.synchronize { begin; condition.wait(mutex); ensure; puts "waiter has it: \#{mutex.owned?}"; end }
      end
      machine.yield
      mutex.synchronize do
        condition.signal
        begin
          Ringspun.shield { waiter.join }
        rescue Ringspun::TerminatedError
          puts "root"
        end
      end
      begin
        machine.yield
      rescue Ringspun::DeadlockError
        nil # was told while the shield kept it back
      end
    RUBY
  end

  def test_a_sleep_without_end_is_hope_for_a_signal
    assert_child "woken\n", <<~'RUBY'
      strand = machine.spin { machine.park }
      trap("USR1") { machine.schedule(strand, "woken") }
      sleeper = machine.spin { machine.sleep }
      spawn("sleep 0.05; kill -USR1 #{$$}")
      puts strand.await
      machine.terminate(sleeper)
    RUBY
  end

  # A process that holds all threads of another one but the first, as a computer does that has no processor for them.
  SIGNALS = <<~'RUBY'
    X86 = RUBY_PLATFORM.start_with?("x86_64")
    SIGPROCMASK, PTRACE, TGKILL = X86 ? [14, 101, 234] : [135, 117, 131]
    Warning[:deprecated] = false # Kernel#syscall

    def hold_back(signal)
      set = [1 << (Signal.list.fetch(signal) - 1)].pack("Q")
      syscall(SIGPROCMASK, 0, [set].pack("P").unpack1("J"), 0, 8) # SIG_BLOCK
    end

    def threads(pid) = Dir.children("/proc/#{pid}/task").map(&:to_i) - [pid]

    def hold(thread)
      syscall(PTRACE, 0x4206, thread, 0, 0) # PTRACE_SEIZE
      syscall(PTRACE, 0x4207, thread, 0, 0) # PTRACE_INTERRUPT
      Process.wait(thread, 0x40000000)
    end

    # nil: it has ended.
    def sleeps(pid)
      status = File.read("/proc/#{pid}/status")
      status.match?(/^State:\sZ/) ? nil : status[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i
    end
  RUBY

  # It is under way for as long as nobody has taken it. It is let go when the machine has slept often enough to have given up.
  def test_a_signal_that_is_long_on_its_way_is_hope
    taker = Preloaded.env(File.expand_path("signal_taker.c", __dir__), "-pthread")
    assert_child "woken\n", "#{SIGNALS}#{<<~'RUBY'}", env: taker
      reader, writer = IO.pipe
      strand = machine.spin { machine.park }
      trap("USR1") { machine.schedule(strand, "woken") }
      machine.yield
      hold_back("USR1")
      fork do
        parent = Process.ppid
        threads(parent).each { |thread| hold(thread) }
        Process.kill("USR1", parent)
        before = sleeps(parent)
        writer << "sent"
        sleep(0.001) while (now = sleeps(parent)) && now < before + 20
      end
      reader.readpartial(4)
      puts strand.await
    RUBY
  end

  # Nobody ever takes it.
  def test_a_signal_that_is_held_back_is_no_hope
    assert_child "Ringspun::DeadlockError\n", "#{SIGNALS}#{<<~'RUBY'}"
      trap("USR1") { puts "taken" }
      hold_back("USR1")
      syscall(TGKILL, $$, $$, Signal.list["USR1"])
      puts begin
        machine.park
      rescue Ringspun::DeadlockError => error
        error.class
      end
    RUBY
  end

  def test_a_thread_that_computes_for_ever_is_no_hope
    answer = child(<<~'RUBY', env: Preloaded.env(File.expand_path("spinner.c", __dir__), "-pthread"))
      machine.park
    RUBY
    assert_match(/DeadlockError/, answer.err)
  end

  # Whoever lives may call machine.schedule.
  def test_another_thread_is_hope
    assert_child "woken\n", <<~RUBY
      mine = machine
      strand = machine.spin { machine.park }
      Thread.new { sleep(0.05).then { mine.schedule(strand, "woken") } }
      puts strand.await
    RUBY
  end

  def test_another_thread_that_ends_leaves_no_hope
    answer = child(<<~RUBY, timeout: 10)
      strand = machine.spin { machine.park }
      Thread.new { sleep(0.05) }
      begin
        strand.await
      rescue Ringspun::DeadlockError
        puts "DeadlockError"
      end
      machine.terminate(strand)
    RUBY
    assert_equal "DeadlockError\n", answer.out, answer.err
  end

  # Nothing ends a shield but its own wait, and that will not end.
  def test_the_root_inside_its_own_shield
    %i[epoll sim].each do |backend|
      assert_child "Ringspun::DeadlockError\nwent on\n", <<~RUBY
        machine = Ringspun::Machine.new(backend: :#{backend})
        begin
          machine.scope(shield: true) { machine.park }
        rescue Ringspun::DeadlockError => error
          puts error.class
        end
        machine.yield
        puts "went on"
      RUBY
    end
  end
end
