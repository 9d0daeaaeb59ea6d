# frozen_string_literal: true

# A download from whichever of three mirrors greets first, in parts, a few at once. Those that have not greeted by then are given
# up, and a part whose connection breaks is asked for again. The mirrors are small servers of this process, so that the program
# needs no network.
#
#   bin/bundle exec ruby examples/fastest_mirror.rb
#
# Prints:
#   the fastest mirror is swift; given up: idle, slow
#   12 parts, in order
#   never more than 4 at once, and 2 connections broke

require "ringspun/core_ext"
require "socket"

using Ringspun::Refinements

PARTS = 12
AT_ONCE = 4

# Answers "hello" by its name, and a number by that part. The first connections for some parts break.
class Mirror
  attr_reader :name, :most_at_once, :broken

  def initialize(name, seconds, breaks: [])
    @name = name
    @seconds = seconds
    @breaks = breaks.map(&:to_s)
    @at_once = @most_at_once = @broken = 0
    @server = TCPServer.new("127.0.0.1", 0)
    @serving = SERVE.call_nonblock(self)
  end

  def port = @server.local_address.ip_port

  def accept
    @server.await_readable
    @server.accept_nonblock
  end

  def serve(connection)
    answer = counted { answer_to(connection.await_read(100)) }
    connection.await_written(answer) if answer
  ensure
    connection.close
  end

  def close
    @serving.conclude_to :closed
    @server.close
  end

  private

  def counted
    @most_at_once = [@most_at_once, @at_once += 1].max
    yield
  ensure
    @at_once -= 1
  end

  def answer_to(question)
    wait @seconds
    return name if question == "hello"
    return "part #{question}" unless @breaks.delete(question)

    @broken += 1
    nil
  end

  # Nobody waits for the end of a connection, so its evaluation is not needed.
  SERVE = concurrent_proc { |mirror| loop { CONNECTION.call_and_forget(mirror, mirror.accept) } }
  CONNECTION = concurrent_proc { |mirror, connection| mirror.serve(connection) }
  private_constant :SERVE, :CONNECTION
end

def ask(port, question)
  socket = TCPSocket.new("127.0.0.1", port)
  socket.await_written(question)
  socket.await_read(100)
ensure
  socket&.close
end

def fetch(mirror, number)
  ask(mirror.port, number.to_s)
rescue EOFError
  retry
end

mirrors = [Mirror.new("idle", 3600), Mirror.new("slow", 60), Mirror.new("swift", 0.005, breaks: [2, 5])]

greetings = mirrors.map { |mirror| concurrently { ask(mirror.port, "hello") } }
fastest = await_fastest(*greetings, within: 10)
late = mirrors.zip(greetings).reject { |_mirror, greeting| greeting.concluded? }
late.each { |_mirror, greeting| greeting.conclude_to(nil) } # which closes its connection
puts "the fastest mirror is #{fastest.await_result}; given up: #{late.map { |mirror, _greeting| mirror.name }.join(", ")}"

mirror = mirrors[greetings.index(fastest)]
parts = (1..PARTS).map_concurrently(limit: AT_ONCE) { |number| fetch(mirror, number) }
puts "#{parts.size} parts, in order" if parts == (1..PARTS).map { |number| "part #{number}" }
puts "never more than #{AT_ONCE} at once, and #{mirror.broken} connections broke" if mirror.most_at_once <= AT_ONCE
mirrors.each(&:close)
