# frozen_string_literal: true

require "bench/working"
require "pty"

module Bench
  # A worker process, and another process that watches it.
  class Watching < Working
    # What calls Rack apps each second, each of them so many times, as its users do: without a server of HTTP between.
    ASKED = <<~'RUBY'
      kind, path, apps, times = ARGV
      require "ringspun/jobs/#{kind.downcase}"
      Ringspun::Jobs.config.redis = { url: ENV.fetch("REDIS_URL") }
      apps = Array.new(apps.to_i) { Ringspun::Jobs.const_get(kind).new }
      request = { "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => "", "HTTP_HOST" => "localhost", "SCRIPT_NAME" => "" }
      loop do
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        apps.each { |app| times.to_i.times { app.call(request.dup).first == 200 or abort("#{kind} has not answered") } }
        # A read is fresh for a second.
        sleep([began + 1.05 - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max)
      end
    RUBY

    PROGRAMS_BY_NAME = {
      "10 tops" => [PROGRAMS.fetch(:ringspun).first, "top", "--interval", "0.1"], # one that looks ten times as often
      "10 tabs of 10 servers" => ["-e", ASKED, "Web", "/live", "10", "1"],
      "1,000 tabs of a server" => ["-e", ASKED, "Web", "/live", "1", "333"], # each asks every three seconds
      "10 metrics" => ["-e", ASKED, "Metrics", "/metrics", "10", "1"]
    }.freeze

    # What the worker did from one moment to the next: jobs, and seconds of each clock.
    Window = Data.define(:jobs, :user, :system, :real)

    WINDOWS = 40
    # So that what changes by and by changes both alike.
    WATCHED = [false, true, true, false, true, false, false, true].freeze

    # @param watched_by [String] a key of PROGRAMS_BY_NAME
    def initialize(meter, jobs, watched_by, backend:)
      first = jobs / 10
      @step = (jobs - first) / (WINDOWS + 1)
      @watched_by = watched_by
      moments = Array.new(WINDOWS + 1) { |number| first + (@step * number) }.push(jobs)
      super(meter, :ringspun, 1_000, moments.map { |count| "done #{count}" }, backend:)
    end

    # Yields while the worker works.
    def run(&)
      program = PROGRAMS_BY_NAME.fetch(@watched_by)
      # Without a terminal `top` looks only once.
      master, slave = PTY.open
      Thread.new { IO.copy_stream(master, File::NULL) }.report_on_exception = false
      @watcher = spawn(@environment, *ALONE, RbConfig.ruby, *program, in: slave, out: slave, err: words)
      super
    ensure
      end_watcher
      [master, slave].compact.each(&:close)
    end

    # @return [Array(Array<Window>, Array<Window>)] the windows with somebody who watches, and those without
    def windows
      from = news
      windows = Array.new(WINDOWS) do |number|
        watch(watched = WATCHED[number % WATCHED.size])
        to = news
        window = Window.new(jobs: @step, user: to[:user] - from[:user], system: to[:system] - from[:system],
                            real: to[:clock] - from[:clock])
        from = to
        [watched, window]
      end
      news # the last job
      windows.partition(&:first).map { |part| part.map(&:last) }
    end

    private

    def watch(watched)
      raise "who watches has ended: #{File.read(words)}" if Process.wait(@watcher, Process::WNOHANG)

      Process.kill(watched ? :CONT : :STOP, @watcher)
    end

    def end_watcher
      Process.kill(:KILL, @watcher) && Process.wait(@watcher) if @watcher
    rescue Errno::ESRCH, Errno::ECHILD # it has ended by itself
      nil
    end

    def words = File.join(@folder, "watcher")
  end
end
