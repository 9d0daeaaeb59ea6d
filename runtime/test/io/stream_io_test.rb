# frozen_string_literal: true

require_relative "io_case"
require "support/seccomp"

# Reads and writes of many strands that go to the ring without a try.
class StreamIoTest < IOCase
  PAIRS = 20
  TIMES = 50
  TOTAL = 2 * PAIRS * TIMES

  # A child, for its filter would stay; what it measures there it prints.
  MANY = <<~RUBY
    require "ringspun"
    def many(machine, pairs, times)
      before = machine.metrics
      machine.scope do |scope|
        pairs.each do |reader, writer|
          scope.spin { times.times { machine.write(writer, "x" * 1000) } }
          scope.spin { times.times { machine.read(reader, bytes = +"", 1000); raise "cut" unless bytes.size == 1000 } }
        end
      end
      after = machine.metrics
      puts %i[ops_inline ops_started system_calls].map { |name| after[name] - before[name] }.join(" ")
    end
  RUBY

  def test_by_the_ring_a_system_call_is_for_many
    [:pipe, -> { _1.socketpair(:UNIX, :STREAM) }].each do |make|
      inline, started, calls = moved_by(:ring) { |machine| make.to_proc.call(machine) }
      assert_equal (ring? ? [0, TOTAL] : [TOTAL, 0]), [inline, started]
      assert_operator calls, :<, TOTAL * 0.3
    end
  end

  def test_inline_each_is_a_system_call
    inline, started, calls = moved_by(:inline, &:pipe)
    assert_equal [TOTAL, 0, 0], [inline, started, calls]
  end

  # The filter looks at each call for microseconds.
  def test_where_calls_are_dear_the_ring_is_asked
    answer = ruby_child(<<~RUBY, env: { "RINGSPUN_STREAM_IO" => nil })
      #{MANY}
      require "support/seccomp"
      Seccomp.slow_down
      Ringspun.run do |machine|
        pairs = Array.new(#{PAIRS}) { machine.pipe }
        3.times { many(machine, pairs, #{TIMES}) }
      end
    RUBY
    _, *later = answer.out.lines.map { |line| line.split.map(&:to_i) }
    assert_equal 2, later.size, answer.err
    later.each do |inline, started, calls|
      assert_operator (ring? ? inline : started), :<, 0.3 * TOTAL
      assert_operator calls, :<, 0.3 * TOTAL
    end
  end

  def test_what_is_read_and_written_is_what_was_asked_for
    with_stream_io(:ring) do |machine|
      pairs = Array.new(10) { |index| index.even? ? make_pipe : make_socketpair }
      written = Array.new(10) { |index| Array.new(200) { |round| "#{index}.#{round}." * (1 + (round * 37 % 900)) }.join }
      read = Array.new(10) { +"" }
      machine.scope do |scope|
        pairs.each_with_index do |(reader, writer), index|
          scope.spin do
            reused = +""
            written[index].scan(/.{1,3000}/m) { |piece| machine.write(writer, reused.replace(piece)) && reused.clear }
            close(writer)
          end
          scope.spin do
            bytes = +""
            read[index] << bytes while machine.read(reader, bytes.clear, 1 + (read[index].size % 5000)).positive?
          end
        end
      end
      assert_equal written, read
    end
  end

  # A source that others change during the wait goes out as it was.
  def test_a_string_that_is_changed_behind_a_write
    with_stream_io(:ring) do |machine|
      reader, writer = make_pipe
      [10, 5000].each do |size|
        source = "a" * size
        strand = machine.spin { machine.write(writer, source) }
        machine.yield
        source.replace("b" * size)
        assert_equal size, strand.await
        machine.read(reader, bytes = +"", size)
        assert_equal "a" * size, bytes
      end
    end
  end

  # Each op locks its buffer; a part of one it does not.
  def test_many_write_from_one_buffer
    with_stream_io(:ring) do |machine|
      [100, 20_000].each do |size|
        whole = IO::Buffer.for("x" * size)
        [whole, whole.slice(1, size - 1), "x" * size].each do |source|
          pairs = Array.new(6) { |index| index.even? ? make_pipe : make_socketpair }
          sent = pairs.map { |_, writer| machine.spin { machine.write(writer, source) } }.map(&:await)
          assert_equal [source.is_a?(String) ? size : source.size] * 6, sent
          pairs.each { |reader, _| assert_equal sent[0], machine.read(reader, +"", size) }
        end
      end
    end
  end

  def test_a_cancelled_strand_writes_at_once
    with_stream_io(:ring) do |machine|
      reader, writer = make_pipe
      machine.scope do |scope|
        scope.spin do
          machine.sleep
        ensure
          30.times { machine.write(writer, "x") }
        end
        machine.yield
        scope.cancel
      end
      machine.read(reader, bytes = +"", 100)
      assert_equal "x" * 30, bytes
    end
  end

  def test_who_holds_a_mutex_keeps_its_turn
    with_stream_io(:ring) do |machine|
      _, writer = make_pipe
      mutex = Ringspun::Mutex.new
      before = machine.metrics
      mutex.synchronize { 20.times { machine.write(writer, "x") } }
      assert_equal [20, 0], %i[ops_inline ops_started].map { |name| machine.metrics[name] - before[name] }
    end
  end

  def test_what_is_no_choice
    assert_match(/there are :auto, :inline and :ring/, refusal(stream_io: :rings))
    assert_match(/stream_io: expected :auto, :inline or :ring, got 7/, refusal(stream_io: 7))
    assert_match(/stream_io: :ring is for backend: :uring/, refusal(stream_io: :ring, backend: :epoll))
    answer = ruby_child("require 'ringspun'; Ringspun.run {}", env: { "RINGSPUN_STREAM_IO" => "none" })
    assert_match(/unknown stream_io none/, answer.err)
  end

  private

  def refusal(**options)
    Ringspun::Machine.current.close
    assert_raises(Ringspun::UsageError) { Ringspun::Machine.new(**options) }.message
  end

  # On epoll all are tried.
  def ring? = Ringspun.backend.name == :uring

  def with_stream_io(way, &)
    way = :auto unless ring?
    Ringspun::Machine.current.close
    Ringspun::Machine.new(stream_io: way)
    on_machine(&)
  end

  # Ops that were tried, ops that were not, and system calls on the ring.
  def moved_by(way)
    with_stream_io(way) do |machine|
      pairs = Array.new(PAIRS) { keep(*yield(machine)) }
      before = machine.metrics
      machine.scope do |scope|
        pairs.each do |reader, writer|
          scope.spin { TIMES.times { machine.write(writer, "x" * 1000) } }
          scope.spin { TIMES.times { machine.read(reader, +"", 1000) } }
        end
      end
      %i[ops_inline ops_started system_calls].map { |name| machine.metrics[name] - before[name] }
    end
  end
end
