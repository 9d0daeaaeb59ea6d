# frozen_string_literal: true

# Pipes.
class PipeTest < Minitest::Test
  include Strands

  def test_bytes_go_through_a_pipe
    read, write = machine.pipe
    in_scope do |scope|
      reader = scope.spin { Array.new(2) { machine.read(read, 10) } }
      machine.yield
      assert_equal 5, machine.write(write, "first")
      wait(0.001)
      machine.write(write, "second")
      assert_equal %w[first second], reader.await
    end
  end

  def test_more_than_a_pipe_holds
    read, write = machine.pipe
    bytes = "x" * 1_000_000
    in_scope do |scope|
      scope.spin { assert_equal 1_000_000, machine.write(write, bytes) }
      count = 0
      count += machine.read(read, 100_000).size while count < 1_000_000
      assert_equal 1_000_000, count
    end
  end

  def test_a_read_that_is_cancelled_leaves_the_bytes
    read, write = machine.pipe
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { machine.read(read, 10) } }
    machine.write(write, "later")
    assert_equal "later", machine.read(read, 10)
  end
end
