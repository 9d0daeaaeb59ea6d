# frozen_string_literal: true

require "test_helper"
require "drb"
require "support/stock"

# Calls of an object in another process.
class StockDRbTest < Minitest::Test
  include Stock

  DESK = <<~'RUBY'
    require "drb"
    desk = Class.new do
      def initialize = @queue = Thread::Queue.new
      def take = @queue.pop
      def put(item) = @queue.push(item) && item
      def each_upto(number) = number.times { |i| yield i }
    end
    lambda do |_, &ready|
      server = DRb.start_service("druby://127.0.0.1:0", desk.new)
      ready.call(server.uri[/\d+\z/])
      server.thread.join
    end
  RUBY

  def setup
    super
    @server = DRb.start_service("druby://127.0.0.1:0") # for blocks, which the other side calls
  end

  def teardown
    @server.stop_service
    @server.thread.join
    @server.instance_variable_get(:@grp).list.each(&:join) # those that serve a connection close it when they end
    connections = ObjectSpace.each_object(DRb::DRbConn).to_a # held here: a collected one leaves its socket open for a while
    DRb::DRbConn.stop_pool # which forgets its connections and does not close them
    connections.each { |each| each.close if each.alive? }
    super
  end

  def desk
    server_process(DESK) { |port| Ringspun.run { yield DRbObject.new_with_uri("druby://127.0.0.1:#{port}") } }
  end

  def test_a_call_that_waits_for_another
    desk do |desk|
      taking = Array.new(3) { parked { desk.take } }
      3.times { |i| assert_equal i, desk.put(i) }
      assert_equal [0, 1, 2], machine.await(*taking).sort
    end
  end

  def test_a_call_with_a_block
    desk do |desk|
      seen = []
      parked { desk.each_upto(3) { |i| seen << i } }.join
      assert_equal [0, 1, 2], seen
    end
  end
end
