# frozen_string_literal: true

# The part of bin/support/supervisor.rb within the process of the tests. It tells which test runs and what became of it, leaves
# out tests that another process has run, and prints where all threads are when it is asked. Without a supervisor it does nothing.
module Supervised
  class << self
    # @param fds [String, nil] numbers of two descriptors: to tell, and to be asked
    # @param only [String, nil] a file with the names of the tests to run
    # @param except [String, nil] a file with those of the tests to leave out
    # @param share [#include?, nil] says which of all others to run; nil: all
    def start(fds, only: nil, except: nil, share: nil)
      @only = names_in(only)
      @except = names_in(except)
      @share = share
      Minitest::Runnable.singleton_class.prepend(Filter) if @only || @except || @share
      return unless fds

      @pid = Process.pid
      @lock = Thread::Mutex.new
      @out, asked = fds.split(",").map { |fd| IO.for_fd(Integer(fd)).tap { |io| io.sync = true } }
      Thread.new { answer(asked) }.name = "supervised"
      Minitest.extensions << Plugin
    end

    # Says that the running test is alive and well, and that its limits are to count from now on: for one that takes long because
    # it has been asked to.
    def tick = tell(:tick)

    # Says that a process, which is none of this one's children, is to count as one.
    #
    # @param pid [Integer]
    def keep(pid) = tell(:keeps, pid)

    # @param test_class [Class]
    # @param name [String] of a test method
    def wanted?(test_class, name)
      test = "#{test_class}##{name}"
      @only ? @only.include?(test) : !@except&.include?(test) && (@share.nil? || @share.include?(test_class, name))
    end

    # @param what [Symbol]
    # @param more [Array<#to_s>]
    def tell(what, *more)
      return unless @out && Process.pid == @pid # a forked child has nothing to say

      message = [what, *more].join("\0").b
      @lock.synchronize { @out.write([message.bytesize].pack("N"), message) }
    end

    private

    def names_in(path) = path && File.readlines(path, chomp: true).to_h { |name| [name, true] }

    # A supervisor that is gone cannot end us any more.
    def answer(asked)
      asked.gets ? print_threads : Process.kill(:KILL, 0)
    end

    def print_threads
      Thread.list.each do |thread|
        lines = Minitest.filter_backtrace(thread.backtrace.to_a)
        warn "", thread.inspect, *lines.map { |line| "    #{line}" }
      end
      tell(:printed)
    end
  end

  module Filter
    def filter_runnable_methods(...) = super.select { |name| Supervised.wanted?(self, name) }
  end

  module Plugin
    def self.minitest_plugin_init(_options) = Minitest.reporter << Reporter.new
  end

  # Tells the supervisor, and at the end which tests have used most of the processors.
  class Reporter < Minitest::AbstractReporter
    # The number of tests that are named, and the seconds that each has used at least.
    DEAREST = 6
    SECONDS_LEAST = 1

    def start = @used = {}

    def report
      dearest = @used.select { |_test, seconds| seconds >= SECONDS_LEAST }.max_by(DEAREST, &:last)
                     .map { |test, seconds| format("%<test>s %<seconds>.1f s", test:, seconds:) }
      puts "dearest: #{dearest.join(", ")}" if dearest.any?
      Supervised.tell(:reported)
    end

    def prerecord(test_class, name)
      @before = used
      Supervised.tell(:begins, "#{test_class}##{name}")
    end

    def record(result)
      @used["#{result.klass}##{result.name}"] = used - @before
      failed = !result.passed? && !result.skipped?
      Supervised.tell(:ended, "#{result.klass}##{result.name}", result.assertions, *(result if failed))
    end

    private

    # Seconds of this process and of its children that have ended, also those that were forked elsewhere.
    def used = Process.times.to_a.sum + (defined?(Zygote) ? Zygote.cpu : 0)
  end
end
