# frozen_string_literal: true

require "test_helper"
require "support/signals"

# Ctrl-C while a strand is in a hook: the program ends by it, once, and ensure blocks run, once.
class SchedulerInterruptTest < Minitest::Test
  include Signals

  # Of the mutex the interrupted holder gives the lock to the one that waits for it, and that is then interrupted in its sleep.
  HOOKS = {
    sleep: "sleep",
    sleep_with_an_end: "sleep(1000)",
    queue: "Thread::Queue.new.pop",
    queue_with_a_timeout: "Thread::Queue.new.pop(timeout: 1000)",
    place: "Thread::SizedQueue.new(1).then { |full| 2.times { full << 1 } }",
    mutex: "Thread::Mutex.new.then { |own| Fiber.schedule { own.synchronize { sleep } }.then { own.lock } }.then { sleep }",
    condition: "Thread::Mutex.new.then { |own| own.synchronize { Thread::ConditionVariable.new.wait(own) } }",
    thread: "Thread.new { sleep }.join",
    thread_with_a_timeout: "Thread.new { sleep }.join(1000)",
    timeout: "Timeout.timeout(1000) { sleep }",
    read: "IO.pipe.first.read",
    gets: "IO.pipe.first.gets",
    write: "IO.pipe.then { |_, writer| writer << ('x' * 10_000_000) }",
    wait: "IO.pipe.first.wait_readable",
    wait_with_a_timeout: "IO.pipe.first.wait_readable(1000)",
    select: "IO.select([IO.pipe.first])",
    select_with_a_timeout: "IO.select([IO.pipe.first], nil, nil, 1000)",
    socket: "UNIXSocket.pair.first.recv(1)",
    accept: "TCPServer.new('127.0.0.1', 0).accept",
    process: "Process.wait($child = spawn('exec sleep 1000'))",
    process_group: "Process.wait(-($child = spawn('exec sleep 1000', pgroup: true)))",
    process_that_may_stop: "Process.wait($child = spawn('exec sleep 1000'), Process::WUNTRACED)",
    system: "IO.pipe.then { |reader, writer| [system('exec cat', in: reader), writer] }",
    blocking_operation: "Fiber.scheduler.blocking_operation_wait(-> { sleep })",
    enumerator: "Enumerator.new { sleep }.next"
  }.freeze

  PROGRAM = <<~'RUBY'
    require "socket"
    require "timeout"
    GC.disable # the other ends of pipes and sockets are nobody's, and closed when they are collected
    $child = nil
    at_exit { Process.kill(:KILL, $child) if $child }
    def wait_in_hook = yield
  RUBY

  HOOKS.each do |name, wait|
    # By somebody else, while the whole process sleeps.
    define_method(:"test_in_#{name}") do
      assert_equal %w[block strand], ended_by("INT", <<~RUBY).sort
        #{PROGRAM}
        Ringspun.run do
          Fiber.schedule { begin; #{wait}; puts "never"; ensure; puts "strand"; end }
          kill_when_asleep("INT")
          sleep
        ensure
          puts "block"
        end
        puts "never"
      RUBY
    end

    # In the block of the run itself.
    define_method(:"test_in_#{name}_in_the_block") do
      assert_equal %w[block strand], ended_by("INT", <<~RUBY).sort
        #{PROGRAM}
        Ringspun.run do
          Fiber.schedule { begin; sleep; ensure; puts "strand"; end }
          kill_when_asleep("INT")
          #{wait}
          puts "never"
        ensure
          puts "block"
        end
      RUBY
    end
  end

  # A program that sets the scheduler has no run around it: the signal meets its root, at the end of the script.
  %w[sleep queue thread read select process].each do |name|
    define_method(:"test_in_#{name}_of_set_scheduler") do
      assert_equal %w[strand], ended_by("INT", <<~RUBY)
        #{PROGRAM}
        Fiber.set_scheduler(Ringspun::Scheduler.new)
        Fiber.schedule { begin; #{HOOKS.fetch(name.to_sym)}; puts "never"; ensure; puts "strand"; end }
        kill_when_asleep("INT")
      RUBY
    end
  end

  FILE = <<~'RUBY'
    require "tempfile"
    Warning[:experimental] = false
    SIZE = 20_000_000
    file = Tempfile.create.tap { |it| it.truncate(SIZE) }
    at_exit { File.unlink(file.path) }
  RUBY

  # What is so large that it takes several waits, of which the signal meets the first.
  FILES = {
    read: "file.read",
    write: "file.write('x' * SIZE)",
    pread: "file.pread(SIZE, 0)",
    pwrite: "IO::Buffer.new(SIZE).pwrite(file, 0)"
  }.freeze

  FILES.each do |name, call|
    define_method(:"test_in_#{name}_of_a_file") do
      assert_equal %w[block strand], ended_by("INT", <<~RUBY).sort
        #{FILE}
        Ringspun.run do
          Fiber.schedule { begin; #{call}; puts "never"; ensure; puts "strand"; end }
          kill_myself("INT")
          sleep
        ensure
          puts "block"
        end
      RUBY
    end
  end

  # It waits for the call that is under way on the descriptor, which may come to an early end by it.
  def test_in_io_close
    assert_equal %w[block closer strand], ended_by("INT", <<~RUBY).sort
      #{FILE}
      Ringspun.run do
        Fiber.schedule { begin; file.pread(SIZE, 0); sleep; ensure; puts "strand"; end }
        file.autoclose = false
        Fiber.schedule { begin; Fiber.scheduler.io_close(file.fileno); sleep; ensure; puts "closer"; end }
        kill_myself("INT")
        sleep
      ensure
        puts "block"
      end
    RUBY
  end

  # Nobody sleeps; the signal comes between two of them.
  def test_in_yield
    assert_equal %w[block other strand], ended_by("INT", <<~RUBY).sort
      Ringspun.run do
        Fiber.schedule { begin; loop { Fiber.scheduler.yield }; ensure; puts "strand"; end }
        Fiber.schedule { begin; 100.times { Fiber.scheduler.yield }; kill_myself("INT"); sleep; ensure; puts "other"; end }
        loop { Fiber.scheduler.yield }
      ensure
        puts "block"
      end
    RUBY
  end

  # The block that is offloaded runs to its end, as it says.
  def test_in_offload
    assert_equal ["offloaded", "strand"], ended_by("INT", <<~RUBY)
      Ringspun.run do
        go = Thread::Queue.new
        Fiber.schedule do
          Ringspun.offload { go.pop.then { puts "offloaded" } }
          sleep
        ensure
          puts "strand"
        end
        kill_when_asleep("INT")
        begin
          sleep
        ensure
          go << true
        end
      end
    RUBY
  end

  # A look-up goes to a thread that cannot be called back; the strand does not wait for it.
  def test_in_a_name_look_up
    assert_equal %w[strand], ended_by("INT", <<~RUBY)
      require "socket"
      Ringspun.run do
        Fiber.schedule do
          Fiber.schedule { kill_myself("INT") }
          20.times { Addrinfo.getaddrinfo("localhost", 1) }
          sleep
        ensure
          puts "strand"
        end
      end
    RUBY
  end

  def test_an_ensure_block_that_waits
    assert_equal %w[ensured], ended_by("INT", <<~RUBY)
      Ringspun.run do
        kill_when_asleep("INT")
        Thread::Queue.new.pop
      ensure
        Ringspun.shield { sleep(0.001).then { Thread::Queue.new.pop(timeout: 0.001) } }
        puts "ensured"
      end
    RUBY
  end

  def test_the_lock_of_one_that_is_interrupted_is_free
    assert_equal ["free: true"], ended_by("INT", <<~RUBY)
      mutex = Thread::Mutex.new
      at_exit { puts "free: \#{!mutex.locked?}" }
      Ringspun.run do
        Fiber.schedule { mutex.synchronize { sleep } }
        3.times { Fiber.schedule { mutex.synchronize { sleep } } }
        kill_when_asleep("INT")
        sleep
      end
    RUBY
  end

  def test_a_rescue_and_another_run
    assert_program "Interrupt\nfine\n", <<~RUBY
      begin
        Ringspun.run { kill_when_asleep("INT").then { Thread::Queue.new.pop } }
      rescue Interrupt => e
        puts e.class
      end
      Ringspun.run { Fiber.schedule { sleep(0.001).then { puts "fine" } } }
    RUBY
  end
end
