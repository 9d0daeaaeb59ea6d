# frozen_string_literal: true

require "test_helper"
require "support/strands"

# No memory for a size that a caller or a peer has chosen: NoMemoryError in the strand that asks, and the machine goes on. Each in
# a process of its own, in which little more than Ruby itself has room.
class MemoryTest < Minitest::Test
  include Strands

  # Bytes of address space beside what is in use when it begins; what does not fit there, and what fits once. That is more than 64
  # MB, which malloc may have in reserve.
  ROOM = 100_000_000
  MUCH = 200_000_000
  ONCE = 75_000_000

  PRELUDE = <<~RUBY.freeze
    def without_memory
      GC.start
      used = Integer(File.read("/proc/self/status")[/VmSize:\\s+(\\d+)/, 1]) * 1024
      Process.setrlimit(:AS, used + #{ROOM}, Process.getrlimit(:AS).last)
      yield
    rescue NoMemoryError => error
      puts error.class
    ensure
      puts "unwound"
    end

    # Another strand reads what this one writes.
    def go_on
      reader, writer = machine.pipe
      strand = machine.spin { machine.read(reader, bytes = +"").then { bytes } }
      machine.yield
      machine.write(writer, "goes on")
      puts strand.await
    end

    def flood(to)
      machine.spin do
        piece = "." * 1_000_000
        loop { machine.write(to, piece) }
      rescue Errno::EPIPE, Errno::ECONNRESET, Ringspun::ClosedError
        nil
      end
    end
  RUBY

  # Each ends in NoMemoryError.
  CALLS = {
    "a_read_of_many_bytes" => "flooded.read(MUCH)",
    "a_read_to_the_end" => "flooded.read",
    "a_line_without_an_end" => "flooded.read_line(limit: MUCH)",
    "a_mark_that_does_not_come" => 'flooded.read_until("no such", limit: MUCH)',
    "a_look_ahead" => "flooded.peek(MUCH)",
    "a_write" => 'unread.write("." * ONCE)',
    "a_write_of_many_strings" => 'unread.write(*Array.new(100) { "." * 750_000 })',
    "a_read_into_a_string" => 'machine.read(pair.first, +"", MUCH)',
    "a_receive_into_a_string" => 'machine.recvmsg(pair.first, +"", MUCH)',
    "an_option_of_a_socket" => 'machine.setsockopt(pair.first, 1, 1, "." * ONCE)',
    "a_path" => 'machine.open("." * ONCE)',
    "the_path_of_a_folder" => 'machine.mkdir("." * ONCE)',
    "two_paths" => 'machine.rename("." * ONCE, "a")',
    "a_slice_that_is_read_into" => "machine.read(pair.first, IO::Buffer.new(ONCE).slice(0, ONCE))",
    "a_slice_that_is_written" => "machine.write(pair.first, IO::Buffer.new(ONCE).slice(0, ONCE))",
    "a_vector_of_slices" => "machine.writev(pair.first, [IO::Buffer.new(ONCE).slice(0, ONCE)])"
  }.freeze

  SCENE = <<~RUBY.freeze
    MUCH = #{MUCH}
    ONCE = #{ONCE}
    Warning[:experimental] = false
    def pair = @pair ||= machine.socketpair
    def flooded = @flooded ||= (flood(pair.last); Ringspun::Stream.new(pair.first))
    def unread = @unread ||= Ringspun::Stream.new(pair.first)
  RUBY

  def setup = GC.stress = false # what runs here runs in other processes

  def assert_survives(call, expected = "NoMemoryError\nunwound\ngoes on\n")
    assert_child expected, <<~RUBY, timeout: 120
      #{PRELUDE}
      #{SCENE}
      Ringspun.run do
        pair
        without_memory { #{call} }
        go_on
        machine.close(pair.first)
      end
    RUBY
  end

  CALLS.each { |name, call| define_method("test_#{name}") { assert_survives(call) } }

  def test_in_a_strand_of_a_scope
    assert_survives <<~RUBY
      machine.scope do |scope|
        other = scope.spin { machine.sleep(60) }
        scope.spin { flooded.read(MUCH) }
        other.await
      end
    RUBY
  end

  def test_what_came_before_is_still_there
    assert_survives <<~'RUBY', "NoMemoryError\n..........\nunwound\ngoes on\n"
      begin
        flooded.read(MUCH)
      rescue NoMemoryError => error
        puts error.class, flooded.read(10)
      end
    RUBY
  end

  def test_of_a_write_all_or_nothing_leaves
    assert_survives <<~'RUBY', "NoMemoryError\n5\nunwound\ngoes on\n"
      begin
        unread.write("short", "." * ONCE)
      rescue NoMemoryError => error
        puts error.class
      end
      unread.write("after")
      unread.flush
      puts machine.read(pair.last, +"")
    RUBY
  end

  # A buffer that doubles, and is there twice while it does, would not fit.
  def test_as_much_as_there_is_room_for
    assert_survives <<~'RUBY', "Ringspun::LimitError\nunwound\ngoes on\n"
      begin
        flooded.read_line(limit: 70_000_000)
      rescue Ringspun::LimitError => error
        puts error.class
      end
    RUBY
  end

  def assert_survives_in_simulation(expected, call)
    assert_child expected, <<~RUBY, timeout: 120
      #{PRELUDE}
      #{SCENE}
      without_memory do
        Ringspun::Simulation.run(faults: false) do
          pair
          #{call}
        ensure
          @pair&.each { |socket| machine.close(socket) }
        end
      end
      Ringspun.run { go_on }
    RUBY
  end

  def test_a_simulated_stream
    assert_survives_in_simulation "NoMemoryError\nunwound\ngoes on\n", "flooded.read"
  end

  def test_a_simulated_file
    assert_survives_in_simulation "unwound\ngoes on\n", <<~'RUBY'
      file = machine.open("file", "w+")
      begin
        machine.ftruncate(file, MUCH)
      rescue Errno::ENOSPC
        machine.pwrite(file, "still", 0)
      end
      machine.close(file)
    RUBY
  end

  # The table of descriptors shall not grow for a number that is not open.
  def test_a_number_beyond_all_that_are_open
    assert_survives <<~'RUBY', "Ringspun::ClosedError\nunwound\ngoes on\n"
      begin
        machine.fsync(4_000_000)
      rescue Ringspun::ClosedError => error
        puts error.class
      end
    RUBY
  end
end
