# frozen_string_literal: true

# Random programs of strands, scopes, limits, generators, evaluations and what they share: each comes to what it may come to.
class ProgramTest < Minitest::Test
  include Evaluations

  Broken = Class.new(StandardError)
  EXPECTED = ExpectedFailures.new("", "programs")

  def test_random_programs_on_simulated_machines = explore(Seeds.of_the_day(300))

  def test_random_programs_on_a_real_kernel # they take real time
    explore(Seeds.of_the_day(300).then { |all| all.first((all.size / 15.0).ceil) }, real: true)
  end

  def test_a_broken_rule_names_the_seed_and_the_steps_that_matter
    wrong = lambda do |program|
      found = [program]
      found.concat(found.shift.parts) until found.empty? || found[0].kind == :limited
      "limited" unless found.empty?
    end
    message = assert_raises(Broken) { (1..100).each { |seed| judge(seed) { |program| wrong.call(program) } } }.message
    lines = message.split("\n")
    assert message.start_with?("seed "), message
    assert_includes lines[1], "once more: RINGSPUN_SEED="
    assert_includes lines[-1], " limited "
    assert_operator lines.size, :<=, 3 + Program::DEPTH_MAX
  end

  private

  def explore(seeds, real: false)
    seeds.each { |seed| judge(seed, real ? 0 : 300) { |program| ProgramRun.failure(program, seed, real: real) } }
    assert seeds.any?
    puts EXPECTED unless EXPECTED.to_s.empty?
  end

  # The block says how a program fails. On a real kernel it does so now and then, and is made no smaller.
  def judge(seed, tries = 300)
    program = Program.draw(Random.new(seed))
    failure = yield program
    return if failure.nil? || EXPECTED.known?(failure)

    names = Shrink.smallest(program.names, tries: tries) do |some|
      failed = yield program.only(some.to_h { |name| [name, true] })
      failed && !EXPECTED.known?(failed)
    end
    smallest = program.only(names.to_h { |name| [name, true] })
    raise Broken, "seed #{seed}: #{failure}\nonce more: RINGSPUN_SEED=#{seed} bin/bundle exec rake test:mruby_random\n" \
                  "#{names.size} of its #{program.names.size} steps break a rule:\n#{smallest}"
  end
end
