# frozen_string_literal: true

# A test that hangs ends the process, and says where. Two watch: a thread, which can print Ruby's backtraces but needs
# the GVL, and a process, for the hang inside C that never gives the GVL back. That one sends SIGABRT, for a core.
module Watchdog
  LIMIT_SECONDS = Integer(ENV.fetch("RINGSPUN_TEST_LIMIT_SECONDS") { GCStress::WANTED ? 600 : 90 })
  GRACE_SECONDS = 30

  class << self
    attr_reader :running

    # Names the running test (nil: none) to both.
    def watch(test)
      @seconds = 0
      @running = test
      @pipe.write_nonblock("#{test}\n") if Process.pid == @pid
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def start
      @pid = Process.pid
      reader, @pipe = IO.pipe
      # Forked twice, so that the watcher is no child of ours and no Process.wait in a test can meet it.
      Process.wait(fork { fork { watch_from_outside(reader) } && exit!(true) })
      reader.close
      Thread.new { watch_from_inside }.name = "watchdog"
    end

    private

    # Counts the seconds in which it ran itself: on a machine that stood still no test is late.
    def watch_from_inside
      loop do
        sleep 1
        give_up if running && (@seconds += 1) > LIMIT_SECONDS
      end
    end

    # The name comes last too, for a long output may be cut at its beginning.
    def give_up
      late = "#{running} runs longer than #{LIMIT_SECONDS} s."
      warn "", late
      Thread.list.each { |thread| warn "", thread.inspect, *thread.backtrace&.map { |line| "    #{line}" } }
      warn "", `ps -o pid,stat,etime,time,args --ppid #{Process.pid}`, late
      `ps -o pid= --ppid #{Process.pid}`.split.each { |pid| end_child(Integer(pid)) }
    ensure
      exit!(false)
    end

    def end_child(pid)
      Process.kill(:KILL, pid)
    rescue Errno::ESRCH # the ps itself
      nil
    end

    def watch_from_outside(reader)
      @pipe.close
      trap("INT", "IGNORE") # Ctrl-C is for the tests; with them this ends as well
      test = ""
      loop do
        heard = reader.wait_readable(test.empty? ? nil : LIMIT_SECONDS + GRACE_SECONDS)
        abort_tests(test) unless heard
        test = reader.readpartial(4096).lines(chomp: true).last
      end
    rescue EOFError, Errno::ESRCH
      nil
    ensure
      exit!(true) # and so never into Minitest's at_exit
    end

    def abort_tests(test)
      warn "", "#{test} runs longer than #{LIMIT_SECONDS} s and holds the GVL."
      Process.kill(:ABRT, @pid)
      sleep 5
      Process.kill(:KILL, @pid)
    end
  end

  start

  def run
    Watchdog.watch("#{self.class}##{name}")
    super
  ensure
    Watchdog.watch(nil)
  end
end
