# frozen_string_literal: true

require "json"
require "rbconfig"
require "tempfile"
require "bench/yjit"

module Bench
  # Runs one sample in a child process and judges it. A sample is a Hash: the child's numbers, or
  # {"unavailable" => reason}, or {"failed" => reason}.
  class Sampler
    CHILD = File.join(ROOT, "bench/child.rb")

    # Far more than any contender needs. A contender that hangs must not hang the bench.
    TIME_LIMIT = 120.0
    QUICK_TIME_LIMIT = 30.0

    # Children get the load path of this process instead of Bundler, which would take most of the time of a small sample.
    LIBRARIES = {
      "RUBYLIB" => $LOAD_PATH.join(File::PATH_SEPARATOR),
      "RUBYOPT" => ENV["RUBYOPT"]&.split&.grep_v(%r{\A-r\S*bundler/setup\z})&.join(" "),
      "BUNDLER_SETUP" => nil # RubyGems loads the file that this names
    }.freeze

    # For another Ruby, which has gems of its own.
    NO_LIBRARIES = %w[RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE BUNDLER_SETUP].to_h { |name| [name, nil] }
                                                                             .merge("RUBYOPT" => Yjit.option).freeze
    RUBY_4 = "RINGSPUN_RUBY_4"

    # All samplers have the servers in common in which their tables are made.
    PREPARING = Mutex.new
    private_constant :PREPARING

    # @param load [#call] the factor by which the limit grows now
    def initialize(time_limit: TIME_LIMIT, prefix: [], counters: nil, load: -> { 1.0 })
      @time_limit = time_limit
      @load = load
      @prefix = prefix
      @counters = counters
    end

    def sample(table, contender, size)
      PREPARING.synchronize { table.prepare(size) }
      command = command(table, contender, size)
      Workspace.settle(table.bytes_of(size)) if table.writes_files?
      judge(table, contender, size, counted(contender, command))
    rescue Unavailable => error
      { "unavailable" => error.message }
    rescue StandardError => error # of what is prepared here: it ends this sample, and not the run
      { "failed" => "#{error.class}: #{error.message.lines.first&.chomp}" }
    end

    # The libraries that children find: name => version.
    def probe
      answer_of(RbConfig.ruby, CHILD, "probe")
    end

    private

    def command(table, contender, size)
      return [FloorProgram.new(contender.program).path, *contender.arguments.call(**size).map(&:to_s)] if contender.program

      [ruby_of(contender), CHILD, "sample", table.file, contender.name,
       JSON.generate(size), JSON.generate(table.warm_up_size(size))]
    end

    def ruby_of(contender)
      return RbConfig.ruby unless contender.on_ruby_4?

      ENV[RUBY_4] or raise Unavailable, "set #{RUBY_4} to a Ruby 4 for which `gem install uringmachine` was run"
    end

    def counted(contender, command)
      libraries = contender.on_ruby_4? ? NO_LIBRARIES : LIBRARIES
      return answer_of(*@prefix, *command, libraries:) unless @counters

      @counters.count(controlled: contender.program.nil?) do |prefix, environment, descriptors|
        answer_of(*prefix, *command, libraries: { **libraries, **environment }, descriptors:)
      end
    end

    def judge(table, contender, size, answer)
      missing = answer["missing"]
      return { contender.ours? ? "failed" : "unavailable" => missing } if missing
      return answer if answer.key?("failed") || answer.key?("unavailable")

      complaint = table.complaint(size, answer["proof"] || {})
      complaint ? { "failed" => complaint } : answer
    end

    def answer_of(*command, libraries: LIBRARIES, descriptors: {})
      Workspace.with_scratch do |scratch|
        Tempfile.create("ringspun-bench-stderr") do |errors|
          run(command, { **libraries, "BENCH_SCRATCH" => scratch }, descriptors, errors)
        end
      end
    end

    def run(command, environment, descriptors, errors)
      reader, writer = IO.pipe
      # In a process group of its own, of which nobody is left afterwards, whatever the child has started.
      pid = Process.spawn(environment, *command,
                          3 => writer, **descriptors, in: File::NULL, out: errors, err: errors, pgroup: true)
      writer.close
      text = read_until_deadline(reader)
      Process.kill(:KILL, -pid) unless text
      _, status = Process.wait2(pid)
      interpret(text, status, errors)
    ensure
      reader&.close
      stop(pid) if pid
    end

    # Everything the child writes, or nil when the time is over.
    def read_until_deadline(reader)
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      text = +""
      loop do
        left = began + limit - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        return nil if left <= 0 || !reader.wait_readable(left)

        text << reader.readpartial(65_536)
      end
    rescue EOFError
      text
    end

    def limit = @time_limit * @load.call

    def interpret(text, status, errors)
      return { "failed" => "no answer within #{limit.round} s" } if text.nil?
      return JSON.parse(text) if status.success? && !text.empty?

      { "failed" => "#{describe(status)}: #{last_words(errors)}" }
    end

    def describe(status)
      status.signaled? ? "killed by signal #{Signal.signame(status.termsig)}" : "exit #{status.exitstatus}"
    end

    # Exceptions are in the answer. Here end a crash, whose report is long, and a floor's single line.
    def last_words(errors)
      errors.rewind
      lines = errors.readlines.map(&:strip).reject(&:empty?)
      (lines.grep(/\[BUG\]|[Aa]ssert/).first || lines.first || "nothing on stderr")[0, 300]
    end

    # The child itself still runs only when we are interrupted.
    def stop(pid)
      Process.kill(:KILL, -pid)
      Process.wait(pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    end
  end
end
