# frozen_string_literal: true

require "json"

require "bench/table"
require "bench/target"
require "bench/metric"
require "bench/meter"
require "bench/payload"

module Bench
  # What runs inside bench/child.rb: a sample, or a probe of which libraries there are.
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

    # The file and line alone: a folder's name is of no use in a report that is shown around.
    def place(error) = error.backtrace&.first.to_s[%r{[^/]+:\d+}]

    # Some tables want more descriptors than the soft limit of 1,024 that is usual; the hard one is there to be used.
    def sample(table_file, contender_name, size, warm_up)
      require table_file
      contender = Bench.tables.last.contender(contender_name)
      require contender.requires if contender.requires
      Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
      open_machine(contender.backend) if contender.backend

      contender.body.call(Meter.new, **parse(warm_up))
      meter = Meter.new
      proof = contender.body.call(meter, **parse(size))
      raise "the contender never called measure" unless meter.reading

      { **meter.reading, operations: meter.operations, notes: meter.notes, proof: }
    end

    # What Ringspun.run then takes. A host that refuses a backend is no fault of ours.
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
        # Before the next one: then Ruby 3.3 does not find its own `fiber` any more, which has that name as well.
        sidekiq: version("sidekiq") { Sidekiq::VERSION },
        # Before Ringspun, with which it does not go together.
        concurrently: version(File.join(ROOT, "bench/peers/concurrently")) { Concurrently::VERSION },
        ringspun: version("ringspun") { Ringspun::VERSION }
      }
    end

    # Whatever is wrong with one library must not hide the others' versions.
    def version(library)
      require library
      yield
    rescue StandardError, ScriptError => error
      "n/a (#{error.message.lines.first.chomp})"
    end
  end
end
