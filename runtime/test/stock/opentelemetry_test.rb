# frozen_string_literal: true

require "test_helper"

# The context of OpenTelemetry in strands. In a process of its own, for the library changes how the gem keeps it.
class OpentelemetryStrandsTest < Minitest::Test
  include AnyBackend
  include Children

  START = <<~'RUBY'
    require "ringspun"
    require "opentelemetry/sdk"
    require "ringspun/opentelemetry"

    KEY = OpenTelemetry::Context.create_key("test")
    def with(value, &) = OpenTelemetry::Context.with_value(KEY, value, &)
    def now = OpenTelemetry::Context.value(KEY)
  RUBY

  def told(program)
    answer = ruby_child(START + program, env: { "RUBYLIB" => $LOAD_PATH.join(":") })
    assert_equal ["", true], [answer.err, answer.status.success?]
    answer.out.lines(chomp: true)
  end

  def test_each_strand_has_its_own_and_begins_with_its_parents
    assert_equal %w[a\ inner\ a b\ inner\ b main nothing], told(<<~'RUBY')
      Ringspun.run do |machine|
        strands = %w[a b].map do |name|
          with(name) do
            machine.spin do
              first = now
              machine.sleep 0.002
              inner = with("inner") { machine.sleep(0.002) && now }
              "#{first} #{inner} #{now}"
            end
          end
        end
        with("main") do
          puts strands.map { |strand| machine.await(strand) }, now
        end
        puts now || "nothing"
      end
    RUBY
  end

  # Fibers are used again by other strands.
  def test_a_strand_leaves_nothing_behind
    assert_equal ["[nil]"], told(<<~'RUBY')
      Ringspun.run do |machine|
        20.times { machine.spin { OpenTelemetry::Context.attach(OpenTelemetry::Context.empty.set_value(KEY, "left")) }.join }
        p Array.new(20) { machine.await(machine.spin { now }) }.flatten.uniq
      end
    RUBY
  end

  def test_fibers_and_threads_begin_with_it_too
    assert_equal %w[a a a], told(<<~'RUBY')
      with("a") do
        puts Fiber.new { now }.resume, Thread.new { now }.value
        Thread.new { with("b") { nil } }.join
        puts now
      end
    RUBY
  end

  def test_clear_and_what_is_not_balanced
    assert_equal %w[nil true false nil], told(<<~'RUBY')
      OpenTelemetry.error_handler = ->(**) { nil }
      token = OpenTelemetry::Context.attach(OpenTelemetry::Context.empty.set_value(KEY, "a"))
      with("b") { OpenTelemetry::Context.clear; p now }
      token = OpenTelemetry::Context.attach(OpenTelemetry::Context.empty.set_value(KEY, "a"))
      p OpenTelemetry::Context.detach(token)
      p OpenTelemetry::Context.detach(token)
      p now
    RUBY
  end
end
