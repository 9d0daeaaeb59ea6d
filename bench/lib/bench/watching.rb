# frozen_string_literal: true

require "bench/working"
require "pty"

module Bench
  # A worker process, and another process that watches it.
  class Watching < Working
    # What calls a Rack app so many times a second, as its users do: without a server of HTTP between.
    ASKED = <<~'RUBY'
      kind, path, times = ARGV
      require "ringspun/jobs/#{kind.downcase}"
      Ringspun::Jobs.config.redis = { url: ENV.fetch("REDIS_URL") }
      app = Ringspun::Jobs.const_get(kind).new
      request = { "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => "", "HTTP_HOST" => "localhost", "SCRIPT_NAME" => "" }
      loop do
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        times.to_i.times { app.call(request.dup).first == 200 or abort("#{kind} has not answered") }
        sleep([began + 1 - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max)
      end
    RUBY

    PROGRAMS_BY_NAME = {
      "nobody" => nil,
      "top" => [PROGRAMS.fetch(:ringspun).first, "top"],
      "a tab" => ["-e", ASKED, "Web", "/live", "1"],
      "1,000 tabs" => ["-e", ASKED, "Web", "/live", "333"], # each asks every three seconds
      "metrics" => ["-e", ASKED, "Metrics", "/metrics", "1"]
    }.freeze

    # Yields while the worker works and is watched.
    def run_watched_by(name, &)
      program = PROGRAMS_BY_NAME.fetch(name)
      program ? beside(program) { run(&) } : run(&)
    end

    private

    # Without a terminal `top` looks only once.
    def beside(program)
      master, slave = PTY.open
      Thread.new { IO.copy_stream(master, File::NULL) }.report_on_exception = false
      watcher = spawn(@environment, *ALONE, RbConfig.ruby, *program, in: slave, out: slave, err: words)
      answer = yield
      raise "who watches has ended: #{File.read(words)}" if Process.wait(watcher, Process::WNOHANG)

      answer
    ensure
      end_watcher(watcher)
      [master, slave].compact.each(&:close)
    end

    def end_watcher(pid)
      Process.kill(:KILL, pid) && Process.wait(pid) if pid
    rescue Errno::ESRCH, Errno::ECHILD # it has ended by itself
      nil
    end

    def words = File.join(@folder, "watcher")
  end
end
