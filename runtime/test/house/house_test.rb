# frozen_string_literal: true

require "test_helper"
require "socket"

# The tests' own tools: a check that never fires proves nothing.
class HouseTest < Minitest::Test
  include AnyBackend

  # A test class that Minitest does not find by itself, so that its failures can be looked at.
  def run_inner(name = "test_inner", &body)
    inner = Class.new(Minitest::Test) { define_method(name, &body) }
    Minitest::Runnable.runnables.delete(inner)
    inner.new(name).run
  end

  def test_a_descriptor_left_open_is_a_failure
    left = nil
    result = run_inner { left = Socket.pair(:UNIX, :STREAM) }
    assert_match(/descriptors outlive the test.*socket/m, result.failure.message)
  ensure
    left&.each(&:close)
  end

  def test_a_descriptor_closed_again_is_none
    assert_predicate run_inner { IO.pipe.each(&:close) && pass }, :passed?
  end

  def test_an_unknown_skip_is_a_failure
    result = run_inner { skip "because" }
    refute_predicate result, :skipped?
    assert_match(/skips.yml does not list/, result.failure.message)
  end

  def test_a_child_answers_its_status
    assert_predicate in_child { nil }, :success?
    assert_equal 3, in_child { exit!(3) }.exitstatus
  end

  def test_a_hanging_child_is_killed
    result = run_inner { in_child(timeout: 0.05) { sleep } }
    assert_match(/ran longer than 0.05 s/, result.failure.message)
  end

  def test_a_ruby_child_answers_what_it_printed
    answer = ruby_child("require 'ringspun'; puts ARGV; warn Ringspun::VERSION; exit 4", "a", "b")
    assert_equal ["a\nb\n", "#{Ringspun::VERSION}\n", 4], [answer.out, answer.err, answer.status.exitstatus]
  end

  def test_what_has_no_backend_is_left_out_only_when_asked
    # With Bundler, which knows where Minitest is.
    code = <<~RUBY
      require "test_helper"
      require "support/on_simulation"
      Class.new(Minitest::Test) { include(AnyBackend) && (def test_of_any = puts("any")) }
      Class.new(Minitest::Test) { include(OnSimulation) && (def test_simulated = puts("simulated")) }
      Class.new(Minitest::Test) { def test_real = puts("real") }
    RUBY
    { nil => %w[any real simulated], "1" => %w[real] }.each do |only, expected|
      answer = ruby_child(code, env: { "RUBYOPT" => "-rbundler/setup", "RINGSPUN_BACKEND_ONLY" => only })
      assert_equal expected, answer.out.scan(/^\W*(any|real|simulated)$/).flatten.sort, answer.err
    end
  end

  def test_mappings_counts_memory_mappings
    assert_operator mappings, :>, 10
  end
end
