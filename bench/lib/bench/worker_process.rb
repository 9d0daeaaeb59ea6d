# frozen_string_literal: true

require "json"
require "rbconfig"
require "bench/load"

module Bench
  # A worker process of a library, whose jobs tell their moments by Jobs::Tally. Its log goes into a file.
  class WorkerProcess
    # Ends the worker with this process: https://man7.org/linux/man-pages/man1/setpriv.1.html
    ALONE = %w[setpriv --pdeathsig KILL].freeze
    SECONDS = 60

    LIBRARY = File.join(ROOT, "bench/lib")

    # @param arguments [Array<String>] of Ruby
    # @param moments [Array<String>] at which it reports; see Jobs::Tally
    # @param copies [Integer] of the process
    def initialize(meter, arguments, environment, moments, weigh: false, copies: 1)
      @copies = copies
      @pids = []
      @folder = meter.scratch
      @pipe = File.join(@folder, "tally").tap { |path| File.mkfifo(path) }
      @command = [*ALONE, RbConfig.ruby, *arguments]
      @environment = { "BENCH_TALLY" => @pipe, "BENCH_MOMENTS" => moments.join(","), "BENCH_WEIGH" => ("1" if weigh),
                       **environment }
    end

    # Yields while the worker works.
    def run
      @tally = File.open(@pipe, "r+")
      @copies.times { @pids << spawn(@environment, *@command, %i[out err] => [log, "a"], chdir: @folder) }
      yield
    ensure
      stop(:KILL)
      @tally&.close
    end

    # Waits for the next moment, and returns its report: a Hash with pid, clock, user, system and perhaps rss.
    def news
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      until @tally.wait_readable(0.1)
        ended = @pids.find { |pid| Process.wait(pid, Process::WNOHANG) }
        @pids.delete(ended)
        raise "the worker has ended (#{Process.last_status}): #{last_words}" if ended
        raise "the worker is silent: #{last_words}" if silent_since?(began)
      end
      JSON.parse(@tally.gets, symbolize_names: true)
    end

    # Ends the worker, and waits for that.
    def stop(signal)
      @pids.each { |pid| Process.kill(signal, pid) }
      Process.wait(@pids.first) && @pids.shift until @pids.empty?
    end

    private

    def silent_since?(began) = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began > SECONDS * Load.factor

    def log = File.join(@folder, "log")
    def last_words = File.exist?(log) ? File.readlines(log, chomp: true).grep_v(/\A\s+from /).last.to_s[0, 300] : ""
  end
end
