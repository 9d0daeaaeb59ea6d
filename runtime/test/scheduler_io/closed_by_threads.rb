# frozen_string_literal: true

require_relative "hook_case"

# An IO that another thread closes while strands wait on it. Only from 4.0 on does Ruby tell a scheduler of that, so these run as
# on Ruby 4 (cruby/ruby4_test.rb).
class ClosedByThreadsTest < HookCase
  each_stream do |name, on|
    define_method("test_close_by_another_thread#{on}") do
      Ringspun.run do
        reader, = stream(name)
        _, writer = stream(name) # of another, for this one has readers
        waits = [-> { reader.gets }, -> { reader.wait_readable }, -> { Enumerator.new { reader.sysread(1) }.next }]
        strands = waits.map { |wait| waiting(&wait) }
        writing = waiting { writer.write("x" * LARGE * 3) }
        closers = [reader, writer].map { |io| Thread.new { io.close } }
        [*strands, writing].each { |strand| assert_ends_with(IOError, strand, /closed/) }
        closers.each(&:join)
        assert_equal [true, true], [reader, writer].map(&:closed?)
      end
      assert_nothing_in_flight
    end
  end

  # It has a process, which Ruby waits for.
  def test_close_of_a_child_s_output_by_another_thread
    Ringspun.run do
      io, = keep(IO.popen("exec cat", "r+"))
      strand = waiting { io.gets }
      closer = Thread.new { io.close }
      assert_ends_with(IOError, strand, /closed/)
      closer.join
      assert_predicate io, :closed?
    end
    assert_nothing_in_flight
  end

  def test_close_of_a_child_s_output_by_another_strand
    Ringspun.run do
      io, = keep(IO.popen("exec cat", "r+"))
      strand = waiting { io.gets }
      io.close
      assert_ends_with(IOError, strand, /closed/)
    end
    assert_nothing_in_flight
  end
end
