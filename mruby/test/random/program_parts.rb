# frozen_string_literal: true

# Steps of a Program about what strands share. Each is :well, or says what is wrong.
module ProgramParts
  private

  def told(expected, seen) = expected == seen ? :well : "#{expected.inspect[0, 200]}, and it was #{seen.inspect[0, 200]}"

  # Takes the block's values, whose wait a limit cuts short again and again, until it is nil.
  def take_all(step, into)
    loop do
      value = step.choose([true, false]) ? @machine.timeout(0.001) { yield } : yield
      break unless value

      into << value
    rescue Ringspun::TimeoutError
      next
    end
  end

  # Producers push in order, and nothing is lost or doubled.
  def queue(step)
    queue = step.numbers[0] % 3 == 0 ? Ringspun::Queue.new : Ringspun::SizedQueue.new(step.numbers[0] % 3)
    taken = Array.new(1 + (step.numbers[3] % 2)) { [] }
    producers = (0..step.times).to_a
    @machine.scope do |scope|
      taken.each { |into| scope.spin { take_all(step, into) { queue.pop } } }
      producers.map { |producer| scope.spin { produce(queue, producer, step) } }.each(&:await)
      queue.close
    end
    return "out of order: #{taken.inspect}" unless producers.all? { |producer| taken.all? { |all| in_order?(all, producer) } }

    told(producers.flat_map { |producer| (0...5).map { |item| [producer, item] } }.sort, taken.flatten(1).sort)
  end

  def produce(queue, producer, step)
    5.times do |item|
      Ringspun.wait(step.seconds) if (item + producer) % 3 == 0
      queue.push([producer, item])
    end
  end

  def in_order?(items, producer)
    numbers = items.select { |from, _| from == producer }.map { |_, number| number }
    numbers == numbers.sort
  end

  CHUNK = Ringspun::Stream::CHUNK

  # All bytes arrive, though some do not fit into the pipe at once. Lines end where a read does, and beside that.
  def pipe(step)
    sizes = [0, CHUNK - 1, CHUNK, CHUNK * 4, 1 + (step.numbers[0] * step.numbers[3] / 10)]
    lines = (0..step.times).map { |number| number.to_s * sizes[(step.numbers[2] + number) % sizes.size] }
    reader, writer = step.numbers[3].even? ? @machine.pipe : @machine.socketpair
    begin
      read = []
      @machine.scope do |scope|
        scope.spin do
          lines.each { |line| writer.write_line(line) and Ringspun.wait(step.seconds) }
        ensure
          writer.close
        end
        take_all(step, read) { reader.read_line(limit: 1_000_000) }
      end
      lines == read ? :well : "wrong lines, of #{read.map(&:bytesize).inspect} bytes"
    ensure
      reader.close
      writer.close
    end
  end

  def guard(step, most, wanted)
    inside = seen = entered = 0
    @machine.scope do |scope|
      wanted.times do
        scope.spin do
          yield lambda {
            entered += 1
            inside += 1
            seen = inside if inside > seen
            Ringspun.wait(step.seconds)
            inside -= 1
          }
        end
      end
    end
    seen > most ? "#{seen} were inside" : told([wanted, 0], [entered, inside])
  end

  def mutex(step)
    mutex = Ringspun::Mutex.new
    guard(step, 1, 2 + step.times) { |work| mutex.synchronize(&work) }
  end

  def semaphore(step)
    semaphore = Ringspun::Semaphore.new(2)
    guard(step, 2, 3 + step.times) { |work| semaphore.hold(&work) }
  end

  def barrier(step)
    count = 2 + step.times
    barrier = Ringspun::Barrier.new(count)
    arrived = 0
    seen = []
    @machine.scope do |scope|
      count.times do |index|
        scope.spin do
          Ringspun.wait(step.seconds) if index % 2 == 0
          arrived += 1
          barrier.wait
          seen << arrived
        end
      end
    end
    told([count] * count, seen)
  end

  # One waits until the others have added up to their number.
  def condition(step)
    mutex = Ringspun::Mutex.new
    condition = Ringspun::Condition.new
    sum = 0
    @machine.scope do |scope|
      waiter = scope.spin do
        mutex.synchronize do
          condition.wait(mutex) while sum < 5
          sum
        end
      end
      5.times do
        scope.spin do
          Ringspun.wait(step.seconds)
          mutex.synchronize { sum += 1 and condition.broadcast }
        end
      end
      told(5, waiter.await)
    end
  end
end
