# frozen_string_literal: true

require "json"

require "bench/table"
require "bench/target"
require "bench/metric"
require "bench/counters"
require "bench/meter"
require "bench/payload"

module Bench
  # What bench/child.rb runs: a sample, or a probe for the libraries that are installed.
  class Child
    def initialize(arguments)
      @arguments = arguments
    end

    def answer
      command, *rest = @arguments
      command == "probe" ? probe : sample(*rest)
    rescue LoadError => error
      { missing: error.message.lines.first.chomp }
    rescue Unavailable => error
      { unavailable: error.message.lines.first.chomp }
    rescue StandardError, ScriptError, NoMemoryError, SystemStackError => error
      { failed: "#{error.class}: #{error.message.lines.first&.chomp} (#{place(error)})" }
    end

    private

    # File and line without the folder, which does not belong in a report that others read.
    def place(error) = error.backtrace&.first.to_s[%r{[^/]+:\d+}]

    # Raises the soft limit of descriptors, mostly 1,024, to the hard one: some tables need more.
    def sample(table_file, contender_name, size, warm_up)
      require table_file
      contender = Bench.tables.last.contender(contender_name)
      require contender.requires if contender.requires
      Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
      open_machine(contender.backend) if contender.backend

      contender.body.call(Meter.new, **parse(warm_up))
      meter = Meter.new(counters: Counters)
      proof = contender.body.call(meter, **parse(size))
      raise "the contender never called measure" unless meter.reading

      { **meter.reading, operations: meter.operations, notes: meter.notes, proof: }
    end

    # Opens the machine that Ringspun.run then uses. A backend that the host refuses makes the sample unavailable, not failed.
    def open_machine(backend)
      Ringspun::Machine.new(**BACKENDS.fetch(backend))
    rescue Ringspun::Error => error
      raise Unavailable, error.message
    end

    def parse(size) = JSON.parse(size, symbolize_names: true)

    def probe
      {
        async: version("async") { "#{Async::VERSION}, #{IO::Event::Selector.default.name} selector" },
        "io-event": version("io/event") { IO::Event::VERSION },
        "io-stream": version("io/stream") { IO::Stream::VERSION },
        pg: version("pg") { "#{PG::VERSION}, libpq #{PG.library_version / 10_000}.#{PG.library_version % 10_000}" },
        eventmachine: version("eventmachine") { "#{EventMachine::VERSION}, #{EventMachine.library_type}" },
        # Before the gem concurrently, which has a file `fiber` as well: after it Ruby 3.3 does not find its own.
        sidekiq: version("sidekiq") { Sidekiq::VERSION },
        # Before Ringspun, for both define the same names.
        concurrently: version(File.join(ROOT, "bench/peers/concurrently")) { Concurrently::VERSION },
        ringspun: version("ringspun") { Ringspun::VERSION }
      }
    end

    # An error in one library must not hide the versions of the others.
    def version(library)
      require library
      yield
    rescue StandardError, ScriptError => error
      "n/a (#{error.message.lines.first.chomp})"
    end
  end
end
