# frozen_string_literal: true

require "test_helper"
require "tempfile"

# RINGSPUN_HELD_UP=seed, as support/held_up.rb tells. All that is looked at runs in other processes, for this one may be held up
# itself.
class HeldUpTest < Minitest::Test
  def setup = GC.stress = false

  def test_it_holds_up_the_lines_that_the_gaps_say
    assert_equal %w[-e:4 -e:6 -e:7 -e:9], printed(<<~RUBY)
      HeldUp.start([1, 2, 1, 2].map { [_1, true] })
      a = 1
      a += 1; def other(more) = more
      a += 1
      a += 1
      a += 1
      a += 1
      puts HeldUp.stop
    RUBY
  end

  def test_methods_blocks_and_other_threads_count
    assert_equal %w[-e:7 -e:4 -e:9], printed(<<~RUBY)
      def called
        1
      end
      HeldUp.start([1, 1, 2].map { [_1, false] })
      called
      Thread.new do
        1
      end.join
      puts HeldUp.stop
    RUBY
  end

  def test_it_stops_at_four_times_and_other_files_do_not_count
    assert_equal ['["-e:4", "-e:4", "-e:4", "-e:4"]', "[]"], printed(<<~RUBY)
      HeldUp.start([[1, true]] * 4)
      9.times { _1 + 1 }
      p HeldUp.stop
      HeldUp.start([[1, false]]); eval("p\\np", nil, "/elsewhere.rb"); require "English"; p HeldUp.stop
    RUBY
  end

  def test_lines_of_libraries_count_where_all_lines_do
    assert_equal %w[-e:7 /lib.rb:3 -e:8], printed(<<~RUBY)
      eval("def library\\n$a = 1\\n$b = 2\\nend", nil, "/lib.rb")
      HeldUp.start_at_lines([[3, true], [2, false], [1, true]], 1, ["-e"], ["/lib.rb"], [])
      library
      library
      library
      library
      puts HeldUp.stop
    RUBY
  end

  # The thread that is held up keeps the others from running. It may lose its turn just before or after, but not each time.
  def test_no_thread_runs_meanwhile
    assert_equal %w[true true], printed(<<~RUBY)
      ran = 0
      eval("Thread.new { loop { ran += 1 } }", binding, "/elsewhere.rb")
      now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      tries = Array.new(20) do
        Thread.pass
        HeldUp.start_at_lines([[3, true]], HeldUp::MILLISECONDS, ["-e"], [], [])
        before = [now.call, ran]
        after = [now.call, ran]
        HeldUp.stop
        before.zip(after).map { |from, to| to - from }
      end
      puts tries.all? { |seconds, _| seconds >= 0.02 }, tries.any? { |_, turns| turns.zero? }
    RUBY
  end

  def test_no_object_is_made
    assert_equal %w[0], printed(<<~RUBY)
      count = -> { GC.stat(:total_allocated_objects) }
      made = Array.new(2) do
        HeldUp.start([[1000, true], [1, true]])
        before = count.call
        i = 0
        while i < 1000
          i += 1
        end
        count.call - before
      ensure
        HeldUp.stop
      end
      puts made.last
    RUBY
  end

  def test_a_seed_has_its_lines_and_they_are_early_and_late
    drawn = (1..2000).map { |seed| HeldUp.gaps(seed, "A#test_a") }
    assert_equal drawn, (1..2000).map { |seed| HeldUp.gaps(seed, "A#test_a") }
    refute_equal drawn, (1..2000).map { |seed| HeldUp.gaps(seed, "A#test_b") }
    assert(drawn.all? { |gaps| gaps.size == 4 && gaps.map(&:first).all?(&:positive?) })
    assert_in_delta 0.5, drawn.flatten(1).count(&:last).fdiv(8000), 0.05
    sums = drawn.map { |gaps| gaps.sum(&:first) }
    [..8, 9..30, 31..100, 101..200, 201..].each { |range| assert_operator sums.count { range.cover?(_1) }, :>, 100, range }
  end

  def test_a_test_that_fails_says_at_which_lines_and_how_to_run_it_again
    lines = Array.new(2) { run_of(<<~RUBY).last }.uniq
      def test_that_is_held_up = assert_nil(20.times.sum { |i|
        i + 1
      })
    RUBY
    assert_equal 1, lines.size
    assert_match(/\ASomeTest#test_that_is_held_up was held up at (\S+:\d+, ){3}\S+:\d+\.\nAgain: .* SEED=1 FILES=/, lines.first)
  end

  def test_a_test_that_passes_says_nothing
    out, err = run_of("def test_a = assert(true)\ndef test_of_a_child = assert_equal('1', ruby_child('print 1').out)")
    assert_match(/ 0 failures, 0 errors/, out)
    assert_empty err
  end

  # A child that was forked is held up at what is left, and a fresh one at its own lines.
  def test_children_are_held_up_too
    out, = run_of(<<~'RUBY')
      def test_of_children
        fresh = ruby_child("a = 1\n" * 3000 + "puts HeldUp.stop")
        puts "fresh: #{fresh.out.lines.size}"
        HeldUp.start([[4, true]])
        in_child { 1; 2
          3
          4
          $stdout.puts "forked: #{HeldUp.stop.size}"
        }
      end
    RUBY
    assert_match(/^fresh: 4$/, out)
    assert_match(/^forked: 1$/, out)
  end

  private

  # Runs a program with `HeldUp` at hand, and answers the lines that it prints.
  def printed(code)
    answer = ruby_child("require 'support/held_up'\nHeldUp.prepare\n#{code}", env: { "RINGSPUN_HELD_UP" => nil })
    assert_empty answer.err
    answer.out.lines(chomp: true)
  end

  # Runs methods of a test class while the environment asks for it. Answers what that prints, and what it warns of.
  def run_of(methods)
    code = "require 'test_helper'\nclass SomeTest < Minitest::Test\n#{methods}\nend"
    answer = ruby_child(code, "--", "--seed", "1", env: { "RUBYOPT" => "-rbundler/setup", "RINGSPUN_HELD_UP" => "1" })
    [answer.out, answer.err.strip]
  end
end
