# frozen_string_literal: true

# One row of the tables `mruby` and `mruby_memory`, for mruby and CRuby alike: the names that it calls are those of all libraries.
# Prints the reading as JSON.
#
#   work.rb library|floor ROW COUNT
#
# COUNT operations are done three times, or once where memory is what counts.

BATCH = 100

def batches(count, batch = Array.new(BATCH))
  turns = count / batch.size
  while turns > 0
    yield batch
    turns -= 1
  end
end

# In the seed's form.
def call(count, test)
  batches(count) { |batch| batch.each { test.call } }
end

def call_nonblock(count, test)
  batches(count) { |batch| batch.each { test.call_nonblock } }
end

def call_detached(count, test)
  batches(count) do |batch|
    batch.each { test.call_detached }
    wait 0
  end
end

def call_and_forget(count, test)
  batches(count) do |batch|
    batch.each { test.call_and_forget }
    wait 0
  end
end

def await_nonblock(count, test)
  batches(count) { |batch| batch.map { test.call_nonblock }.each { |evaluation| evaluation.await_result } }
end

def await_detached(count, test)
  batches(count) { |batch| batch.map { test.call_detached }.each { |evaluation| evaluation.await_result } }
end

def await_pipes(count, test)
  pipes = Array.new(BATCH) { IO.pipe.tap { |_, writer| writer.write("0") } }
  batches(count, pipes) { |batch| batch.each { |*arguments| test.call(*arguments) } }
  pipes.flatten.each { |io| io.close }
end

# Strands that give way to each other.
def switch(count, strands, test)
  Array.new(strands) { test.call_detached(count / strands) }.each { |evaluation| evaluation.await_result }
end

# Ours has strands, which are less than evaluations.
def spawn_strands(count, machine, block)
  return call_detached(count, concurrent_proc(&block)) unless machine

  batches(count) do |batch|
    batch.each { machine.spin(&block) }
    wait 0
  end
end

def resident_bytes
  GC.start
  File.open("/proc/self/smaps_rollup") { |file| file.read.split("Rss:")[1].to_i * 1024 }
end

# By how many bytes the process grows for each that `park` makes, before `finish` ends them.
def growth(count, park, finish)
  before = resident_bytes
  parked = Array.new(count) { park.call }
  wait 0 unless parked.first.is_a?(Fiber)
  grown = resident_bytes - before
  parked.each { |each| finish.call(each) }
  grown.to_f / count
end

machine = nil
done = 0
counts = proc { done += 1 }
waits = proc do
  wait 0
  done += 1
end
takes_turns = proc do |turns|
  while turns > 0
    wait 0
    done += 1
    turns -= 1
  end
end
parks = proc { done += 1 if await_resume! }
evaluations = proc { |count| growth(count, proc { concurrently(&parks) }, proc { |evaluation| evaluation.resume!(true) }) }
sleeps = proc do
  begin
    wait 3_600
  ensure
    done += 1
  end
end
strands = proc { |count| growth(count, proc { machine.spin(&sleeps) }, proc { |strand| machine.terminate(strand) }) }

library = {
  "call" => proc { |count| call(count, concurrent_proc(&counts)) },
  "call_nonblock" => proc { |count| call_nonblock(count, concurrent_proc(&counts)) },
  "call_detached" => proc { |count| call_detached(count, concurrent_proc(&counts)) },
  "call_and_forget" => proc { |count| call_and_forget(count, concurrent_proc(&counts)) },
  "wait 0" => proc { |count| call(count, proc { done += 1 if wait 0 }) },
  "await_readable" => proc { |count| await_pipes(count, proc { |reader, _| done += 1 if reader.await_readable }) },
  "await_writable" => proc { |count| await_pipes(count, proc { |_, writer| done += 1 if writer.await_writable }) },
  "awaited call_detached" => proc { |count| await_detached(count, concurrent_proc(&counts)) },
  "waiting call" => proc { |count| call(count, concurrent_proc(&waits)) },
  "waiting call_nonblock" => proc { |count| await_nonblock(count, concurrent_proc(&waits)) },
  "waiting call_detached" => proc { |count| await_detached(count, concurrent_proc(&waits)) },
  "waiting call_and_forget" => proc { |count| call_and_forget(count, concurrent_proc(&waits)) },
  "switch, 3 strands" => proc { |count| switch(count, 3, concurrent_proc(&takes_turns)) },
  "switch, 1,000 strands" => proc { |count| switch(count, 1_000, concurrent_proc(&takes_turns)) },
  "spawn" => proc { |count| spawn_strands(count, machine, counts) },
  "a strand" => proc { |count| (machine ? strands : evaluations).call(count) },
  "an evaluation" => evaluations
}

plain = proc { |count| call(count, counts) }
pair = proc do |count|
  fiber = Fiber.new { Fiber.yield(done += 1) while true }
  fiber.resume while (count -= 1) >= 0
end
fiber = proc do
  made = Fiber.new do
    Fiber.yield
    done += 1
  end
  made.resume
  made
end
fibers = proc { |count| growth(count, fiber, proc { |made| made.resume }) }
floor = {
  "switch, 3 strands" => pair, "switch, 1,000 strands" => pair,
  "spawn" => proc { |count| batches(count) { |batch| batch.each { Fiber.new(&counts).resume } } },
  "a strand" => fibers, "an evaluation" => fibers
}

kind, row, count = ARGV
count = count.to_i
work = kind == "library" ? library.fetch(row) : floor[row] || plain

rounds = 0
# Returns seconds. What was only scheduled has its turn after the region.
measure = proc do
  GC.start
  began = Time.now
  grown = work.call(count)
  real = Time.now - began
  rounds += 1
  100.times { wait 0 if done < rounds * count } if kind == "library"
  [real, grown]
end

main = proc do |running|
  machine = running
  if row.start_with?("a ", "an ")
    real, grown = measure.call
    puts %({"real": #{real}, "grown": #{grown}, "done": #{done}})
  else
    measure.call # warms up
    gc_real, = measure.call
    GC.disable
    real, = measure.call
    puts %({"real": #{real}, "gc_real": #{gc_real}, "done": #{done}})
  end
end
Object.const_defined?(:Ringspun) ? Ringspun.run(&main) : main.call
