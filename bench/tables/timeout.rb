# frozen_string_literal: true

require "timeout"

Bench.table "timeout" do
  title "Timeout"
  about "A timeout of one second around a block that returns at once: the cost of a deadline that is not needed."
  size blocks: 200_000
  quick blocks: 10_000
  warm_up blocks: 1_000
  proof { |blocks:| { done: blocks } }
  columns :real_ns, :cpu_ns, :rate, :syscalls
  against_peer :real_ns, :cpu_ns
  syscalls :blocks, few: 1_000, many: 11_000

  # Timeout.timeout of the standard library, which gives each deadline to its own thread.
  contender "threads" do |meter, blocks:|
    done = 0
    meter.measure { blocks.times { Timeout.timeout(1.0) { done += 1 } } }
    meter.operations = done
    { done: }
  end

  # Task#with_timeout, as in Async's guide to best practices.
  contender "async", requires: "async" do |meter, blocks:|
    done = 0
    Sync do |task|
      meter.measure { blocks.times { task.with_timeout(1.0) { done += 1 } } }
    end
    meter.operations = done
    { done: }
  end

  # Timeout.timeout under our scheduler.
  contender "ringspun fs", requires: "ringspun" do |meter, blocks:|
    done = 0
    Ringspun.run do
      meter.measure { blocks.times { Timeout.timeout(1.0) { done += 1 } } }
    end
    meter.operations = done
    { done: }
  end

  # Machine#timeout. More of them, because 200,000 take a twentieth of a second.
  contender "ringspun", requires: "ringspun", size: { blocks: 2_000_000 } do |meter, blocks:|
    done = 0
    Ringspun.run do |machine|
      meter.measure { blocks.times { machine.timeout(1.0) { done += 1 } } }
    end
    meter.operations = done
    { done: }
  end

  targets "cpu_ns <= 500", "syscalls <= 0.001", "cpu_ns <= 1.1 x ringspun epoll"
end
