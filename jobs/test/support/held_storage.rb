# frozen_string_literal: true

# A storage that keeps its callers waiting until the test answers them, in the order in which they have come.
class HeldStorage
  Connection = Struct.new(:closed) do
    def close = self.closed = true
  end

  # @return [Array<Array<String>>] the jids of each call
  attr_reader :calls
  # @return [Array<Connection>] that it has given away
  attr_reader :connections
  # @return [Array<Connection, nil>] with which it was called
  attr_reader :used

  # @return [Array<Array(Thread, Fiber)>, nil] of each call, if a test has set it to an Array
  attr_accessor :callers

  # @param open [Boolean] it answers at once
  def initialize(open: false)
    @calls = []
    @used = []
    @connections = []
    @answers = Thread::Queue.new
    self.open if open
  end

  def connect = Connection.new(false).tap { |made| @connections << made }

  def push(pushes, connection: nil)
    @calls << pushes.map(&:jid)
    @used << connection
    @callers&.push([Thread.current, Fiber.current])
    answer = @answers.pop&.first
    answer.is_a?(Exception) ? raise(answer) : answer
  end

  # @param answer [nil, Array, Exception] what one call returns or raises
  def answer(answer = nil) = @answers << [answer]

  # From now on it answers at once, and those who wait as well.
  def open = @answers.close
end
