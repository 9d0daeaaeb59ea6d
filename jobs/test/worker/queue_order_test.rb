# frozen_string_literal: true

require "jobs_helper"

class WorkerOrderTest < Minitest::Test
  include AnyBackend

  QueueOrder = Ringspun::Jobs::Worker.const_get(:QueueOrder)

  def test_a_strict_order_stays
    order = QueueOrder.new(%w[critical default low])
    3.times { assert_equal %w[critical default low], order.draw }
    order.add("late", 5)
    order.delete("default")
    assert_equal %w[critical low late], order.draw
  end

  def test_a_queue_comes_first_as_often_as_its_weight_says
    order = QueueOrder.new({ "often" => 6, "seldom" => 3, "rare" => 1 }, random: Random.new(1))
    drawn = Array.new(10_000) { order.draw }
    assert(drawn.all? { |names| names.sort == %w[often rare seldom] })
    first = drawn.map(&:first).tally
    assert_in_delta 6000, first["often"], 200
    assert_in_delta 3000, first["seldom"], 200
    # Where the first is left out, the others are drawn by their weights as well.
    second = drawn.select { |names| names.first == "often" }.map { |names| names[1] }.tally
    assert_in_delta 0.75, second["seldom"].fdiv(second.values.sum), 0.03
  end

  def test_queues_come_and_go
    order = QueueOrder.new({ "a" => 1 })
    order.add("b", 2)
    assert_equal %w[a b], order.draw.sort
    order.delete("a")
    order.add("b", 9)
    assert_equal({ "b" => 9 }, order.weights)
    order.delete("b")
    assert_empty order.draw
  end

  def test_the_configuration_is_not_changed_by_it
    queues = { "a" => 1 }.freeze
    QueueOrder.new(queues).add("b", 1)
    assert_equal({ "a" => 1 }, queues)
  end
end
