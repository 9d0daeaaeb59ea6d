# frozen_string_literal: true

require_relative "test_helper"

require "bench/meter"

# Exq's part of the bench, with a mix that only says what the real one would say.
class BenchTest::ExqTest < Minitest::Test
  ANSWER = { list: "exq:queue:default", calls: 100, calls_with_warm_up: 0, user: 0.5, system: 0.25, real: 2.0, average: 20_000.5,
             deviation: 0.5, median: 19_000, p99: 40_000 }.freeze

  def measure(meter = Bench::Meter.new)
    Bench::Exq.measure(meter, "named", callers: 6, seconds: 2.0)
  end

  # A project of mix whose mix is that shell script, and its folder for the block.
  def with_mix(script)
    Dir.mktmpdir do |folder|
      File.write("#{folder}/mix.exs", "")
      File.write("#{folder}/mix", "#!/bin/sh\n#{script}\n")
      File.chmod(0o755, "#{folder}/mix")
      with_env("PATH" => "#{folder}:#{ENV.fetch("PATH")}", Bench::Exq::PROJECT => folder) { yield folder }
    end
  end

  def with_env(values)
    kept = values.to_h { |name, _| [name, ENV.fetch(name, nil)] }
    ENV.update(values)
    yield
  ensure
    ENV.update(kept)
  end

  def test_what_the_script_says_is_the_sample
    with_mix(%(echo "$@ in $(pwd)" > arguments; echo compiled; echo '#{JSON.generate(ANSWER)}')) do |folder|
      meter = Bench::Meter.new
      assert_equal({ lost: 0 }, measure(meter))
      assert_equal({ user: 0.5, system: 0.25, real: 2.0 }, meter.reading)
      assert_equal 100, meter.operations
      assert_equal({ "average" => 20_000.5, "deviation" => 0.5, "median" => 19_000, "p99" => 40_000, "seconds" => 2.0 },
                   meter.notes)
      arguments = %r{\Arun --no-start \S+/bench/peers/exq.exs \d+ named 6 1.0 2.0 217 in #{folder}$}
      assert_match arguments, File.read("#{folder}/arguments")
    end
  end

  def test_without_a_project_or_its_libraries_there_is_none
    { nil => /\Aset RINGSPUN_EXQ to a mix project that has Exq and Redix\z/,
      "/nowhere" => /names no mix project: \/nowhere has no/ }.each do |folder, message|
      error = with_env(Bench::Exq::PROJECT => folder) { assert_raises(Bench::Unavailable) { measure } }
      assert_match message, error.message
    end
    error = with_mix("echo poolboy; exit 3") { assert_raises(Bench::Unavailable) { measure } }
    assert_equal "the project of RINGSPUN_EXQ has no poolboy", error.message
  end

  def test_a_script_that_fails_is_a_failure
    error = with_mix("echo '** (MatchError) no match' >&2; exit 1") { assert_raises(RuntimeError) { measure } }
    assert_equal "mix: ** (MatchError) no match", error.message
    lost = with_mix(%(echo '#{JSON.generate({ **ANSWER, calls_with_warm_up: 7 })}')) { measure }
    assert_equal({ lost: 7 }, lost)
  end

  def test_versions_are_those_of_the_project
    with_mix("true") do |folder|
      FileUtils.mkdir_p("#{folder}/deps/exq")
      File.write("#{folder}/deps/exq/mix.exs", %(      version: "0.23.0",\n))
      File.write("#{folder}/elixir", "#!/bin/sh\necho 'Erlang/OTP 25 [erts-13]'; echo 'Elixir 1.14.0 (compiled with OTP 24)'\n")
      File.chmod(0o755, "#{folder}/elixir")
      assert_equal({ exq: "0.23.0", elixir: "1.14.0", erlang: "OTP 25" }, Bench::Exq.versions)
    end
    assert_empty(with_env(Bench::Exq::PROJECT => nil) { Bench::Exq.versions })
  end
end
