# frozen_string_literal: true

# A bug that hardly ever shows, found by simulation. A client keeps its connections to a server in a pool and gives up on
# questions that take too long. It looks right, and it is right until an answer comes late: then the next one to use that
# connection gets the answer to somebody else's question.
#
#   bin/bundle exec ruby examples/find_a_bug.rb
#
# Prints:
#   Careless: seed ...: asked for ... and got ...
#   Careless: seed ... again: asked for ... and got ...
#   Careful: 500 seeds, nothing found

require "ringspun"

LENGTH = 8

def read_exactly(machine, socket, length)
  bytes = +""
  until bytes.bytesize == length
    raise EOFError if machine.read(socket, bytes, length - bytes.bytesize, bytes.bytesize).zero?
  end
  bytes
end

# Answers every question with itself, after a while.
def serve(machine, socket)
  loop do
    question = read_exactly(machine, socket, LENGTH)
    machine.sleep(0.001)
    machine.send(socket, question)
  end
rescue EOFError, SystemCallError
  machine.close(socket)
end

# The client under test. What it does with a connection whose question timed out is up to its subclasses.
class Client
  def initialize(machine, connections)
    @machine = machine
    @idle = Ringspun::Queue.new
    connections.times { @idle << connect }
  end

  # The answer, or nil when it took too long.
  def ask(number)
    connection = @idle.pop
    answer = @machine.timeout(0.005) do
      @machine.send(connection, number.to_s.rjust(LENGTH))
      Integer(read_exactly(@machine, connection, LENGTH))
    end
    @idle << connection
    answer
  rescue Ringspun::TimeoutError
    @idle << after_timeout(connection)
    nil
  end

  def close
    @machine.close(@idle.pop) until @idle.empty?
  end

  private

  def connect
    here, there = @machine.socketpair
    @machine.spin { serve(@machine, there) }
    here
  end
end

# Puts the connection back as it is.
class Careless < Client
  private

  def after_timeout(connection) = connection
end

# Knows that an answer is still on its way, and takes a new connection.
class Careful < Client
  private

  def after_timeout(connection)
    @machine.close(connection)
    connect
  end
end

# One run: ten strands ask, and no answer may be another question's.
def check(machine, kind)
  client = kind.new(machine, 2)
  machine.scope do |scope|
    10.times do |number|
      scope.spin do
        answer = client.ask(number)
        raise "asked for #{number} and got #{answer}" unless [number, nil].include?(answer)
      end
    end
  end
  client.close
end

# Most operations take their time, as they do on a bad day.
FAULTS = { delay: 0.5, delay_max: 0.002, short_transfer: 0.2, late_cancel: 0.5 }.freeze

[Careless, Careful].each do |kind|
  count = Ringspun::Simulation.explore(500, faults: FAULTS) { |machine| check(machine, kind) }
  puts "#{kind}: #{count} seeds, nothing found"
rescue RuntimeError => error
  puts "#{kind}: #{error.message}"
  seed = Integer(error.message[/\Aseed (\d+)/, 1])
  begin
    Ringspun::Simulation.run(seed:, faults: FAULTS) { |machine| check(machine, kind) }
  rescue RuntimeError => again
    puts "#{kind}: seed #{seed} again: #{again.message}"
  end
end
