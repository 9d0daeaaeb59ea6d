# frozen_string_literal: true

require "minitest/autorun"
require "yaml"
require_relative "short_limits"

# No test gains a limit of less than a second, unless it must pass. Those that were there before this rule are listed in
# short_limits.yml, which only gets shorter.
class ShortLimitsTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  KNOWN = File.expand_path("short_limits.yml", __dir__)

  def test_no_limit_of_a_test_may_pass_early
    new, gone = difference(known, found)
    assert_empty new, "a limit of a second or more costs nothing where it does not pass; one that must pass says `# must pass`"
    assert_empty gone, "no longer there: take it out of #{KNOWN.delete_prefix("#{ROOT}/")}"
  end

  def test_the_list_knows_how_many_there_are
    assert_equal [{ "a" => ["x: 1"] }, {}], difference({ "a" => ["x: 1"] }, { "a" => ["x: 1", "x: 1"] })
    assert_equal [{}, { "a" => ["x: 1"], "b" => ["y: 1"] }],
                 difference({ "a" => ["x: 1", "x: 1"], "b" => ["y: 1"] }, { "a" => ["x: 1"] })
    assert_equal [{ "c" => ["y: 1"] }, {}], difference({}, { "c" => ["y: 1"] })
  end

  def test_calls_and_options_are_found
    expected = ["timeout(0.5)", "with_timeout(0.1)", "join(0.000_1)", "timeout: 0.2", "checkout_timeout: 0.01", "within: 0.9",
                "limit: 0.5r", "deadline: 0.25", "timeout(0.3)",
                "timeout: (slow ? 10 : 0.5)"]
    assert_limits(<<~'RUBY', *expected)
      machine.timeout(0.5) { read }
      task.with_timeout(0.1) { read }
      thread.join(0.000_1)
      queue.pop(timeout: 0.2)
      on_pool(max: 1, checkout_timeout: 0.01) do |pool| end
      await("x", within: 0.9, of: 0.1)
      watch(limit: 0.5r)
      scope(deadline: 0.25) { |a| b }
      Timeout.timeout(0.3) { 1 }
      queue.pop(timeout: (slow ? 10 : 0.5))
    RUBY
  end

  def test_others_are_none
    assert_limits(<<~'RUBY')
      machine.timeout(1) { read }
      machine.timeout(1.5) { read }
      machine.timeout(0) { read }
      machine.timeout(0.0) { read }
      machine.timeout(limit) { read }
      machine.timeout(-0.5) { read }
      machine.sleep(0.5)
      thread.join
      ["a", "b"].join("0.1")
      array.first(0.1)
      queue.pop(timeout: seconds > 0.5 ? 10 : 20)
      record(time: 0.5, timeouts: 0.5, limited: 0.5)
      "machine.timeout(0.5)"
    RUBY
  end

  def test_those_that_must_pass_are_none
    assert_limits(<<~'RUBY')
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.5) { read } }
      error = assert_raises(Postgres::PoolTimeoutError) do
        pool.session { pool.session(timeout: 0.5) {} }
      end
      assert_ends_with Net::ReadTimeout, parked { get(read_timeout: 0.5) }
      error_of { machine.timeout(0.5) { read } }
      assert_nil queue.pop(timeout: 0.5)
      refute thread.join(0.5)
      machine.timeout(0.5) { read } rescue nil
      machine.timeout(0.5) { read } # must pass: nobody writes
      machine.timeout(0.5) do # must pass
        read
      end
    RUBY
  end

  # An assertion about something else says nothing about the limit.
  def test_an_error_of_another_kind_is_no_excuse
    assert_limits("assert_raises(IOError) { machine.timeout(0.5) { raise IOError } }\nassert machine.timeout(0.25) { 1 }",
                  "timeout(0.5)", "timeout(0.25)")
    assert_limits("error_of { read }\nmachine.timeout(0.5) { read }", "timeout(0.5)")
  end

  def test_a_comment_is_for_its_own_line
    assert_limits("# must pass\nmachine.timeout(0.5) { read }\nthread.join(0.5) # must pass", "timeout(0.5)")
    assert_limits("machine.timeout(0.5) do\n  read # must pass\nend", "timeout(0.5)")
  end

  def test_virtual_time_is_none
    assert_limits(<<~'RUBY', "timeout(0.4)")
      class ATest < Minitest::Test
        include OnSimulation

        def test_a = machine.timeout(0.5) { read }
      end
      class BTest < Minitest::Test
        include Strands

        def test_a = simulate { machine.timeout(0.5) { read } }
        def test_b = Ringspun::Simulation.run(seed: 1) { |machine| machine.timeout(0.5) { read } }
        def test_c = Ringspun.run { |machine| machine.timeout(0.4) { read } }
      end
    RUBY
  end

  def test_programs_in_heredocs_are_looked_at
    source = <<~'RUBY'
      def test_a_child
        assert_child("x", <<~CODE)
          machine.timeout(0.5) { puts "#{name}" }
        CODE
        assert_match <<~TEXT, "it took 0.5 s"
          The limit: 0.5 s have passed.
        TEXT
      end
    RUBY
    assert_equal [["test_a_child: timeout(0.5)", 3]], ShortLimits.in(source).map { |one| [one.to_s, one.line] }
  end

  def test_where_it_stands
    found = ShortLimits.in("X = 1\ndef test_a\n  work\n  thread.join(0.5)\nend\n")
    assert_equal [["test_a: join(0.5)", 4]], found.map { |one| [one.to_s, one.line] }
    source = "define_method(\"test_b\") { join(0.5) }\nY = ->(a) { a.pop(timeout: 0.1) }"
    assert_equal ["test_b: join(0.5)", "Y: timeout: 0.1"], ShortLimits.in(source).map(&:to_s)
  end

  private

  def assert_limits(source, *expected) = assert_equal(expected, ShortLimits.in(source).map(&:limit))

  def known = YAML.safe_load_file(KNOWN)

  def found
    paths = Dir.glob("{runtime,jobs,postgres,http}/test/**/*.rb", base: ROOT).sort
    refute_empty paths
    by_path = paths.to_h { |path| [path, ShortLimits.in(File.read(File.join(ROOT, path))).map(&:to_s)] }
    by_path.except(__FILE__.delete_prefix("#{ROOT}/")).reject { |_, limits| limits.empty? }
  end

  # What the second has that the first has not, and the other way round. A limit that stands twice counts twice.
  def difference(before, after)
    [[after, before], [before, after]].map do |from, to|
      from.to_h { |path, limits| [path, without(limits, to.fetch(path, []))] }.reject { |_, limits| limits.empty? }
    end
  end

  def without(limits, others)
    left = others.tally
    limits.reject { |limit| left.fetch(limit, 0).positive? && left[limit] -= 1 }
  end
end
