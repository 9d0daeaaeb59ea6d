# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::ProgressTest < Minitest::Test
  # A terminal, as far as the bar asks for one.
  class Terminal < StringIO
    def tty? = true
    def winsize = [24, 100]
  end

  def test_on_a_terminal_it_says_what_runs_and_how_much_is_left
    out = progress(Terminal.new)
    assert_match(%r{1/9 +ETA: .* usual N=1 async\r}, out)
    assert_match(%r{9/9 +Time: }, out)
    assert_equal "", out[/[^\r]*\z/].strip # nothing is left beside what is printed next
  end

  def test_elsewhere_there_is_none
    assert_empty progress(StringIO.new)
  end

  private

  # Of nine samples one has begun when the tables are done.
  def progress(out)
    tables = [BenchTest.usual_table, BenchTest.table { contender("threads") {} }]
    shown = Bench::Progress.new(out, tables, 1)
    shown.step("usual N=1 async")
    tables.each { |table| shown.finish(table) }
    out.string
  end
end
