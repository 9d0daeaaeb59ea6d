# frozen_string_literal: true

require "tempfile"

module Bench
  # What `perf stat` counts of a sample: of the region, which Meter begins and ends, in all processes of the contender; of a
  # program in C the whole. https://man7.org/linux/man-pages/man1/perf-stat.1.html (--control)
  class Counters
    # The event, and how a sample calls it.
    EVENTS = %w[instructions cache-misses context-switches].to_h { |event| [event, event.tr("-", "_")] }.freeze

    # The descriptors of a child: perf reads orders from the first and acknowledges them on the second; the child has the others.
    ORDERS, ACKNOWLEDGED, ORDER, ANSWER = 10, 11, 12, 13

    # Set where the child is to say when its region begins and ends.
    CONTROLLED = "BENCH_COUNTERS"

    # Why there can be none here, or nil.
    def self.obstacle
      return if system("perf", "stat", "-e", EVENTS.keys.join(","), "true", out: File::NULL, err: File::NULL)

      "--counters needs perf, and leave to use it: install linux-perf, and see kernel.perf_event_paranoid"
    end

    # In the child.
    def self.during
      return yield unless ENV[CONTROLLED]

      # Or it would wait for a perf that has died.
      [ORDERS, ACKNOWLEDGED].each { |number| IO.for_fd(number).close }
      orders, answers = IO.for_fd(ORDER, "w", autoclose: false), IO.for_fd(ANSWER, "r", autoclose: false)
      order = lambda do |text|
        orders.syswrite("#{text}\n")
        answers.sysread(16)
      end
      order.call("enable")
      yield.tap { order.call("disable") }
    end

    # In the parent: calls the block with what the child's command begins with, its environment and its descriptors, and adds to
    # the sample that the block returns what was counted meanwhile.
    def count(controlled:)
      Tempfile.create("ringspun-bench-perf") do |file|
        pipes = controlled ? IO.pipe + IO.pipe : []
        sample = yield command(file.path, controlled), controlled ? { CONTROLLED => "1" } : {}, descriptors(*pipes)
        { **sample, "counters" => read(file.read) }
      ensure
        pipes&.each(&:close)
      end
    end

    private

    def command(path, controlled)
      control = ["--delay=-1", "--control=fd:#{ORDERS},#{ACKNOWLEDGED}"] if controlled
      ["perf", "stat", "-x,", "-o", path, "-e", EVENTS.keys.join(","), *control, "--"]
    end

    def descriptors(orders = nil, order = nil, answer = nil, acknowledged = nil)
      orders ? { ORDERS => orders, ORDER => order, ANSWER => answer, ACKNOWLEDGED => acknowledged } : {}
    end

    # Lines such as "1234,,instructions,5678,100.00,,", with "<not supported>" where this machine does not count.
    def read(text)
      text.lines.filter_map do |line|
        count, _unit, event = line.split(",")
        name = EVENTS[event&.split(":")&.first]
        [name, Float(count)] if name && count.match?(/\A[\d.]+\z/)
      end.to_h
    end
  end
end
