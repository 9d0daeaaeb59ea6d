# frozen_string_literal: true

require_relative "hook_case"
require "support/signals"

# Hooks where no strand may park: in handlers and finalizers while the machine sleeps; and in a simulation, which has a world
# of its own beside the real one.
class SchedulerOutsideTest < HookCase
  include Signals

  WORK = <<~'RUBY'
    require "tempfile"
    require "io/wait"
    WORK = lambda do
      reader, writer = IO.pipe
      writer.write("pipe")
      Tempfile.create do |file|
        File.write(file.path, "file")
        sleep 0.001
        puts [system("true"), `echo shell`.chomp, reader.read(4), File.read(file.path), IO.select([reader], nil, nil, 0.001).inspect,
              reader.wait_readable(0.001).inspect, reader.read_nonblock(1, exception: false), file.pwrite("x", 0)].join(" ")
      end
    end
  RUBY

  DONE = "true shell pipe file nil nil wait_readable 1"

  def test_in_a_signal_handler_while_the_machine_sleeps
    assert_child("#{DONE}\ndone\n", WORK + <<~'RUBY')
      reader, writer = IO.pipe
      trap(:USR1) { WORK.call; writer.close }
      Ringspun.run do
        Process.kill(:USR1, $$) if Process.respond_to?(:kill) && !Fiber.schedule { reader.read }.nil?
        reader.wait_readable
      end
      puts "done"
    RUBY
  end

  def test_in_a_signal_handler_from_outside_while_the_machine_sleeps
    assert_program("#{DONE}\ndone\n", WORK + <<~'RUBY')
      reader, writer = IO.pipe
      trap(:USR1) { WORK.call; writer.close }
      kill_when_asleep(:USR1)
      Ringspun.run { reader.read }
      puts "done"
    RUBY
  end

  def test_in_a_finalizer
    assert_child("#{DONE}\ndone\n", WORK + <<~'RUBY')
      $finalized = nil
      def abandon = ObjectSpace.define_finalizer(Object.new, ->(_) { $finalized ||= WORK.call || true })
      10.times { abandon }
      Ringspun.run do
        until $finalized
          GC.start
          sleep 0.001
        end
      end
      puts "done"
    RUBY
  end

  def test_real_descriptors_in_a_simulation
    simulate do
      reader, writer = pipe
      writer.write("pipe\n")
      assert_equal "pipe\n", reader.gets
      assert_equal :wait_readable, reader.read_nonblock(1, exception: false)
      assert_equal [[], [writer], []], IO.select([reader], [writer])
      assert_nil IO.select([reader], nil, nil, 0)
      assert_same writer, writer.wait_writable
      assert_nil reader.wait_readable(0)
      with_file("content") { |path| assert_equal "content", File.read(path) }
      assert_equal [true, "shell\n"], [system("true"), `echo shell`]
      assert_equal 4, Process.wait2(spawn("exit 4")).last.exitstatus
      refute_empty Addrinfo.getaddrinfo("localhost", 80)
      one, other = pair
      thread = Thread.new { other.write(other.readpartial(10)) }
      one.write("echo")
      assert_equal "echo", one.readpartial(10)
      thread.join
    end
  end
end
