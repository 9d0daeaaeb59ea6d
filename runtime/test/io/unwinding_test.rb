# frozen_string_literal: true

require_relative "io_case"

# What a cancelled strand can do at once is done, however much it is: the end of a turn lets others run, and raises a cancellation
# once. (On a simulated machine every op waits.)
class UnwindingTest < IOCase
  COUNT = 1_000

  # By name, what a strand does again and again with one end of a pipe.
  WAYS = {
    "machine" => ->(machine, end_, _) { machine.write(end_, "x") },
    "writev" => ->(machine, end_, _) { machine.writev(end_, ["x"]) },
    "stock" => ->(_, _, io) { io.syswrite("x") },
    "nonblock" => ->(_, _, io) { io.write_nonblock("x") }
  }.freeze

  CUTS = {
    "terminate" => lambda { |machine, body|
      strand = machine.spin(&body)
      machine.yield
      machine.terminate(strand)
      strand
    },
    "timeout" => ->(machine, body) { machine.spin { machine.timeout(0.001, &body) } }, # must pass
    "scope" => ->(machine, body) { machine.spin { machine.scope(deadline: 0.001) { body.call } } } # must pass
  }.freeze

  WAYS.each do |name, op|
    CUTS.each do |cut, how|
      define_method("test_#{name}_after_#{cut}_of_one_that_waits") do
        assert_all_written(how, op) { |machine| machine.sleep }
      end

      define_method("test_#{name}_after_#{cut}_of_one_that_never_waits") do
        assert_all_written(how, op) do |machine, io|
          loop { machine.poll(io, :writable) }
        end
      end
    end
  end

  def test_a_stream
    on_machine do |machine|
      one, other = keep(*UNIXSocket.pair)
      strand = machine.spin do
        stream = Ringspun::Stream.new(one)
        begin
          machine.sleep
        ensure
          COUNT.times { stream.write("x" * 10) }
          stream.flush
        end
      end
      machine.yield
      machine.terminate(strand)
      reading = machine.spin { read_exactly(other.fileno, COUNT * 10) }
      assert_instance_of Ringspun::TerminatedError, error_of { strand.await }
      assert_equal "x" * (COUNT * 10), reading.await
    end
  end

  # A strand that swallows its cancellation goes on, and others do as well.
  def test_one_that_never_stops_holds_up_nobody
    on_machine do |machine|
      null = keep(machine.open(File::NULL, "w")).first
      ended = false
      strand = machine.spin do
        machine.sleep
      ensure
        machine.write(null, "x") until ended
      end
      machine.yield
      machine.terminate(strand)
      10.times { machine.sleep(0.001) }
      assert_predicate strand, :alive?
      ended = true
      assert_instance_of Ringspun::TerminatedError, error_of { strand.await }
    end
  end

  # Each cancellation is met once: that of an inner limit, and then that of the strand.
  def test_one_that_never_waits_meets_each_cancellation
    on_machine do |machine|
      null = keep(machine.open(File::NULL, "w")).first
      met = []
      strand = machine.spin do
        2.times do
          machine.timeout(0.001) { loop { machine.write(null, "x") } } # must pass
        rescue Ringspun::TimeoutError => error
          met << error.class
        end
        loop { machine.write(null, "x") }
      end
      machine.sleep(0.001) until met.size == 2
      machine.terminate(strand)
      assert_instance_of Ringspun::TerminatedError, error_of { strand.await }
    end
  end

  # A limit inside the `ensure` is one of its own.
  def test_a_shielded_limit_of_one_that_unwinds
    on_machine do |machine|
      null = keep(machine.open(File::NULL, "w")).first
      met = nil
      strand = machine.spin do
        machine.sleep
      ensure
        met = error_of { machine.scope(deadline: 0.001, shield: true) { loop { machine.write(null, "x") } } }
      end
      machine.yield
      machine.terminate(strand)
      assert_instance_of Ringspun::TerminatedError, error_of { strand.await }
      assert_instance_of Ringspun::TimeoutError, met
    end
  end

  private

  # Its body is given the machine and an IO that is always ready.
  def assert_all_written(cut, write)
    on_machine do |machine|
      other, one = keep(*IO.pipe)
      count = 0
      strand = cut.call(machine, proc do
        yield machine, one
      ensure
        COUNT.times do
          write.call(machine, one.fileno, one)
          count += 1
        end
      end)
      error = error_of { strand.await }
      assert_includes [Ringspun::TerminatedError, Ringspun::TimeoutError], error.class
      assert_equal COUNT, count
      assert_equal "x" * COUNT, other.read_nonblock(COUNT + 1)
    end
  end
end
