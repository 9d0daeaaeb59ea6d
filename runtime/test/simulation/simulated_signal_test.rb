# frozen_string_literal: true

require "test_helper"
require "support/signals"

# What signals do to a run whose time is virtual: it never sleeps, so that each program sends the signal to itself.
class SimulatedSignalTest < Minitest::Test
  include Signals

  # --- Simulation.run, which has a thread of its own ---

  def test_int_during_a_simulation
    lines = ended_by("INT", <<~RUBY)
      Ringspun::Simulation.run do |machine|
        machine.spin { begin; machine.sleep; ensure; puts "strand"; end }
        machine.yield
        kill_myself("INT")
        loop { machine.sleep(1) }
      ensure
        puts "block"
      end
      puts "never"
    RUBY
    assert_equal %w[block strand], lines.sort
  end

  def test_int_during_an_exploration
    lines = ended_by("INT", <<~RUBY)
      runs = 0
      Ringspun::Simulation.explore(1000) do |machine|
        next machine.sleep(1) if (runs += 1) < 3

        kill_myself("INT")
        loop { machine.sleep(1) }
      ensure
        puts runs
      end
    RUBY
    assert_equal %w[1 2 3], lines
  end

  def test_int_during_a_simulation_that_never_waits
    lines = ended_by("INT", <<~RUBY)
      Ringspun::Simulation.run do |machine|
        kill_myself("INT")
        loop { machine.yield }
      ensure
        puts "block"
      end
    RUBY
    assert_equal %w[block], lines
  end

  def test_int_can_be_rescued_outside_of_a_simulation_and_the_next_one_is_as_new
    answer = child(PRELUDE + <<~RUBY)
      begin
        Ringspun::Simulation.run do |machine|
          kill_myself("INT")
          loop { machine.sleep(1) }
        end
      rescue Interrupt
        puts "rescued"
      end
      puts Ringspun::Simulation.run { |machine| machine.spin { machine.sleep(5).then { :fine } }.await }.value
      puts machine.spin { machine.yield || :real }.await
    RUBY
    assert_equal [%w[rescued fine real], ""], [answer.out.split, answer.err]
    assert_predicate answer.status, :success?
  end

  def test_the_caller_that_is_interrupted_goes_on_when_all_have_unwound
    answer = child(PRELUDE + <<~RUBY)
      begin
        Ringspun::Simulation.run do |machine|
          machine.spin { begin; machine.sleep; ensure; Ringspun.shield { machine.sleep(5) }; puts "strand"; end }
          machine.yield
          kill_myself("INT")
          loop { machine.sleep(1) }
        ensure
          Ringspun.shield { machine.sleep(9) }
          puts "block"
        end
      rescue Interrupt
        puts "caller"
      end
    RUBY
    lines = answer.out.lines(chomp: true)
    assert_equal ["caller", %w[block strand]], [lines.pop, lines.sort], answer.err
  end

  # --- Simulation.run in a Ringspun.run, which stands still meanwhile ---

  %w[INT TERM].each do |signal|
    define_method("test_#{signal.downcase}_during_a_simulation_in_a_run") do
      lines = ended_by(signal, <<~RUBY)
        Ringspun.run do |machine|
          strand("of the run") { machine.sleep }
          machine.yield
          Ringspun::Simulation.run do |simulated|
            simulated.spin { begin; simulated.sleep; ensure; puts "simulated strand"; end }
            simulated.yield
            kill_myself("#{signal}")
            loop { simulated.sleep(1) }
          ensure
            puts "simulated block"
          end
          puts "never"
        ensure
          puts "block"
        end
      RUBY
      assert_equal ["simulated block", "simulated strand"], lines.first(2).sort
      assert_equal ["block", "of the run"], lines.drop(2).sort
    end
  end

  def test_int_during_a_simulation_in_a_simulation_in_a_run
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do
        Ringspun::Simulation.run do
          Ringspun::Simulation.run do |machine|
            kill_myself("INT")
            loop { machine.sleep(1) }
          ensure
            puts "inner"
          end
        ensure
          puts "outer"
        end
      end
    RUBY
    assert_equal %w[inner outer], lines
  end

  # It arrives when it does; no other seed is tried after that.
  def test_int_during_an_exploration_in_a_run
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do
        runs = 0
        Ringspun::Simulation.explore(1_000_000_000) { kill_myself("INT") if (runs += 1) == 3 }
        puts "never"
      ensure
        puts runs >= 3
      end
    RUBY
    assert_equal %w[true], lines
  end

  def test_a_second_int_during_a_simulation_that_takes_no_notice
    lines = ended_by("INT", <<~RUBY)
      Ringspun.run do
        Ringspun::Simulation.run do |machine|
          kill_myself("INT")
          begin
            loop { machine.sleep(1) }
          rescue Ringspun::Cancelled
            puts "takes no notice"
            kill_myself("INT")
            loop { begin; machine.sleep(1); rescue Ringspun::Cancelled; end }
          end
        end
      end
    RUBY
    assert_equal ["takes no notice"], lines
  end

  # --- Ringspun.run on a simulated machine ---

  %w[INT TERM].each do |signal|
    define_method("test_#{signal.downcase}_during_a_run_on_a_simulated_machine") do
      lines = on_simulation(signal, <<~RUBY)
        puts machine.backend.name
        Ringspun.run do |machine|
          strand("strand") { machine.sleep }
          machine.yield
          kill_myself("#{signal}")
          loop { machine.sleep(1) }
        ensure
          puts "block"
        end
        puts "never"
      RUBY
      assert_equal "sim", lines.shift
      assert_equal %w[block strand], lines.sort
    end
  end

  def test_int_during_input_on_a_simulated_machine
    lines = on_simulation("INT", <<~RUBY)
      Ringspun.run do |machine|
        reader, writer = machine.pipe
        strand("reader") { machine.read(reader, +"") }
        machine.yield
        kill_myself("INT")
        machine.poll(reader, 1)
      end
    RUBY
    assert_equal %w[reader], lines
  end

  def test_int_waits_for_the_end_of_a_shield_on_a_simulated_machine
    lines = on_simulation("INT", <<~RUBY)
      Ringspun.run do |machine|
        Ringspun.shield do
          kill_myself("INT")
          3.times { machine.sleep(100) }
          puts "finished"
        end
        machine.yield
        puts "never"
      end
    RUBY
    assert_equal %w[finished], lines
  end

  private

  def on_simulation(signal, code) = ended_by(signal, code, env: { "RINGSPUN_BACKEND" => "sim" })
end
