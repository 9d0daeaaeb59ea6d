# frozen_string_literal: true

require "test_helper"
require "support/async"

begin
  verbose, $VERBOSE = $VERBOSE, nil # its files are not written for -w
  require "graphql"
ensure
  $VERBOSE = verbose
end

# GraphQL's Dataloader in a strand: the plain one, the one that calls Fiber.scheduler.run, and AsyncDataloader by the bridge.
class StockGraphQLTest < Minitest::Test
  include StockAsync

  class Source < GraphQL::Dataloader::Source
    def initialize(table)
      super()
      @table = table
    end

    def fetch(keys)
      StockGraphQLTest.fetched << [@table, keys.sort]
      StockGraphQLTest.wait&.call(@table)
      keys.map { |key| "#{@table} #{key}" }
    end
  end

  class Query < GraphQL::Schema::Object
    field :thing, String do
      argument :table, String
      argument :id, Int
    end

    def thing(table:, id:) = dataloader.with(Source, table).load(id)
  end

  QUERY = '{ a: thing(table: "cups", id: 1) b: thing(table: "cups", id: 2) c: thing(table: "pots", id: 3) }'
  ANSWER = { "a" => "cups 1", "b" => "cups 2", "c" => "pots 3" }.freeze

  class << self
    attr_accessor :fetched, :wait
  end

  # Without the warning that `nonblocking:` is deprecated.
  def self.schema(loader, **)
    verbose, $VERBOSE = $VERBOSE, nil
    Class.new(GraphQL::Schema) do
      query Query
      use loader, **
    end
  ensure
    $VERBOSE = verbose
  end

  PLAIN = schema(GraphQL::Dataloader)
  NONBLOCKING = schema(GraphQL::Dataloader, nonblocking: true)
  ASYNC = schema(GraphQL::Dataloader::AsyncDataloader)

  def setup
    super
    self.class.fetched = []
    self.class.wait = nil
  end

  def teardown
    self.class.wait = nil
    super
  end

  def ask(schema) = schema.execute(QUERY).to_h.fetch("data")

  def assert_answers(schema)
    assert_equal ANSWER, ask(schema)
    assert_equal [["cups", [1, 2]], ["pots", [3]]], self.class.fetched.sort
    self.class.fetched.clear
  end

  { plain: PLAIN, nonblocking: NONBLOCKING, async: ASYNC }.each do |name, schema|
    # In a run, in a scheduled fiber of it, and in a run inside another.
    define_method(:"test_#{name}") do
      Ringspun.run do
        assert_answers(schema)
        schedule_and_wait { assert_answers(schema) }
        Ringspun.run { assert_answers(schema) }
      end
    end

    next if name == :plain # makes its fibers blocking, so a wait in a source of it holds the thread

    define_method(:"test_#{name}_while_a_source_waits_others_run") do
      gate = Thread::Queue.new
      self.class.wait = ->(_) { gate.pop }
      Ringspun.run do
        later = Thread::Queue.new
        Fiber.schedule { later.pop } # one that goes on is no concern of a query
        asking = parked { ask(schema) }
        2.times { gate << :go }
        assert_equal ANSWER, asking.await
        later << :end
      end
    end
  end

  # Sources of AsyncDataloader wait beside each other; those of the others one after the other, each for its whole strand.
  def test_sources_of_the_async_one_wait_at_the_same_time
    arrived = Thread::Queue.new
    gates = Hash.new { |hash, table| hash[table] = Thread::Queue.new }
    self.class.wait = ->(table) { (arrived << table).then { gates[table].pop } }
    Ringspun.run do |machine|
      asking = machine.spin { ask(ASYNC) }
      assert_equal %w[cups pots], Array.new(2) { arrived.pop }.sort
      gates.each_value { |gate| gate << :go }
      assert_equal ANSWER, asking.await
    end
  end

  def test_what_a_source_of_the_nonblocking_one_has_scheduled_is_done_before_it_is_asked_for
    done = []
    self.class.wait = ->(table) { Fiber.schedule { machine.yield.then { done << table } } }
    Ringspun.run { ask(NONBLOCKING).then { assert_equal %w[cups pots], done.sort } }
  end

  def test_many_queries_at_once
    self.class.wait = ->(_) { machine.yield }
    [PLAIN, NONBLOCKING, ASYNC].each do |schema|
      Ringspun.run { |machine| assert_equal [ANSWER] * 5, machine.await(Array.new(5) { machine.spin { ask(schema) } }) }
    end
  end

  private

  def schedule_and_wait
    done = Thread::Queue.new
    Fiber.schedule do
      yield
    ensure
      done.close
    end
    done.pop
  end
end
