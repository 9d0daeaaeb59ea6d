# frozen_string_literal: true

require_relative "hook_case"
require "support/signals"
require "timeout"

# IO.copy_stream, and what else CRuby has done by another thread from 3.4 on, when they wait for somebody who does not come.
class SchedulerCopyTest < HookCase
  include Signals

  # With a collection at every allocation, a thread and a few looks at a time take minutes.
  def setup
    super
    GC.stress = false
  end

  def test_a_timeout
    Ringspun.run do
      reader, writer = pipe
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { IO.copy_stream(reader, keep(*IO.pipe).last) } }
      fill(writer)
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { IO.copy_stream(__FILE__, writer) } }
    end
    assert_nothing_in_flight
  end

  def test_a_cancelled_scope
    Ringspun.run do
      reader, = pipe
      ended = []
      machine.scope do |scope|
        scope.spin do
          IO.copy_stream(reader, File::NULL)
        ensure
          ended << :ensured
        end
        settle
        scope.cancel
      end
      assert_equal [:ensured], ended
    end
    assert_nothing_in_flight
  end

  # What it has opened itself it closes then, too. (Leaks are looked for after each test.)
  def test_copies_of_a_cancelled_strand
    Ringspun.run do
      with_file("content") do |path|
        copied = nil
        strand = parked do
          sleep
        ensure
          copied = IO.copy_stream(path, "#{path}.copy")
        end
        machine.terminate(strand)
        assert_ends_with(Ringspun::TerminatedError, strand)
        assert_equal [7, "content"], [copied, File.read("#{path}.copy")]
      end
    end
  end

  def test_copies_without_end_keep_nobody_from_anything
    Ringspun.run do
      reader, = pipe
      strands = Array.new(20) { waiting { IO.copy_stream(reader, File::NULL) } }
      source, feed = pipe
      copy = waiting { IO.copy_stream(source, File::NULL) }
      feed.write("four")
      feed.close
      assert_equal 4, copy.await
      assert_equal(:offloaded, Ringspun.offload { :offloaded })
      strands.each { |strand| machine.terminate(strand) }
      strands.each { |strand| assert_ends_with(Ringspun::TerminatedError, strand) }
    end
  end

  def test_a_descriptor_that_another_strand_closes
    Ringspun.run do
      reader, = pipe
      target, = keep(File.open(File::NULL, "w"))
      strand = waiting(/poll/) { IO.copy_stream(reader, target) }
      machine.close(reader)
      assert_ends_with(IOError, strand, /closed/)
    end
  end

  def test_a_signal
    assert_equal %w[block strand], ended_by("INT", <<~RUBY).sort
      reader, writer = IO.pipe
      Ringspun.run do
        copy = strand("strand") { IO.copy_stream(reader, File::NULL) }
        kill_when_asleep("INT")
        copy.join
      ensure
        puts "block"
      end
    RUBY
  end

  # --- opening, stat and closing ---

  def test_what_strands_open_when_they_are_cancelled
    Ringspun.run do
      with_file("content") do |path|
        before = Leaks.descriptors.size
        amount(50).times do |i|
          strand = machine.spin do
            File.open(path) { |file| file.stat && machine.yield }
            File.write("#{path}.#{i}", "more")
          end
          (i % 5).times { machine.yield }
          Thread.pass
          machine.terminate(strand)
          error_of { strand.join }
        end
        assert_equal before, Leaks.descriptors.size
      end
    end
  end

  def test_closing_in_a_cancelled_strand
    Ringspun.run do
      ends = Array.new(3) { pipe }.flatten
      strand = parked do
        sleep
      ensure
        ends.each(&:close)
      end
      machine.terminate(strand)
      assert_ends_with(Ringspun::TerminatedError, strand)
      assert_equal [true], ends.map(&:closed?).uniq
    end
  end

  # Where Ruby knows of no work that may be handed over, an opening holds the thread.
  if offloads_by_itself?
    def with_fifo
      Dir.mktmpdir do |folder|
        File.mkfifo(path = File.join(folder, "fifo"))
        yield path
      end
    end

    def test_a_fifo_that_nobody_else_opens
      Ringspun.run do
        with_fifo do |path|
          before = Leaks.descriptors.size
          [proc { File.open(path) }, proc { File.read(path) }, proc { IO.copy_stream(path, File::NULL) }].each do |opening|
            assert_raises(Timeout::Error) { Timeout.timeout(0.005, &opening) }
            strand = waiting(&opening)
            machine.terminate(strand)
            assert_ends_with(Ringspun::TerminatedError, strand)
            late = parked do
              sleep
            ensure
              opening.call
            end
            machine.terminate(late)
            assert_ends_with(Ringspun::TerminatedError, late)
          end
          assert_equal before, Leaks.descriptors.size
        end
      end
    end

    def test_both_sides_of_a_fifo
      Ringspun.run do
        with_fifo do |path|
          strands = Array.new(10) { waiting { File.read(path) } }
          assert_equal(:offloaded, Ringspun.offload { :offloaded })
          File.open(path, "w") do |file|
            # A thread may get there when this end is closed again, and would wait for ever.
            machine.sleep(0.001) until Dir["/proc/self/fd/*"].count { |fd| opened?(fd, path) } == strands.size + 1
            file.write("once")
          end
          assert_equal ["once", *[""] * 9], strands.map(&:await).sort.reverse
        end
      end
    end

    def opened?(descriptor, path)
      File.readlink(descriptor) == path
    rescue Errno::ENOENT # it is closed again
      false
    end

    def test_a_signal_while_opening
      assert_equal %w[strand], ended_by("INT", <<~RUBY)
        require "tmpdir"
        Dir.mktmpdir do |folder|
          File.mkfifo(path = File.join(folder, "fifo"))
          Ringspun.run do
            strand("strand") { File.open(path) }
            kill_when_asleep("INT")
            sleep
          end
        end
      RUBY
    end
  end
end
