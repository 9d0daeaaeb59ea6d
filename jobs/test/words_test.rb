# frozen_string_literal: true

require_relative "jobs_helper"

class WordsTest < Minitest::Test
  WORDS = Ringspun::Jobs.const_get(:Words, false)
  FOLDER = File.expand_path("../lib", __dir__)

  # A number that stands in a text, and a word for many things or a unit behind it. A constant is known to its author.
  NUMBER = /\#\{(?!(?:Words\.)?(?:count|duration|times|noun)\b)[^{}]*\}/
  PLURAL = /(?:s|ms|seconds|minutes|hours|days|min|h|times|jobs|processes|queues|connections|bytes|entries|lines|attempts|
               children|places|arguments|names|deaths|retries|strands|threads|workers|callers|errors|keys|classes|groups)\b/x
  # Texts that are of more than one thing, or say a value as its author has written it.
  ALLOWED = [
    "\#{BYTES_MAX} bytes", "\#{DEPTH_MAX} times", "\#{NAME_MAX} bytes", "\#{PATH_MAX} bytes", # far above 1
    "\#{most} s", # a year
    "\#{beat} s", "\#{lease} s" # of the configuration
  ].freeze

  def words = WORDS

  def test_counts
    assert_equal ["0 jobs", "1 job", "2 jobs", "1 process", "3 processes"],
                 [words.count(0, "job"), words.count(1, "job"), words.count(2, "job"), words.count(1, "process", "processes"),
                  words.count(3, "process", "processes")]
    assert_equal %w[was were], [1, 2].map { |number| words.noun(number, "was", "were") }
    assert_equal ["0 times", "once", "twice", "3 times"], Array.new(4) { |number| words.times(number) }
    assert_equal %w[0 999 1,000 1,234,567], [0, 999, 1000, 1_234_567].map { |number| words.number(number) }
  end

  def test_durations_have_the_unit_that_suits_them
    {
      0 => "0 s", 0.0 => "0 s", 0.000_001 => "under 0.1 ms", 0.000_4 => "0.4 ms", 0.001 => "1 ms", 0.009_97 => "10 ms",
      0.2 => "200 ms", 0.999 => "999 ms", 0.999_6 => "1 s", 1 => "1 s", 1.04 => "1 s", 2.54 => "2.5 s", 9.96 => "10 s",
      10.4 => "10 s", 25 => "25 s", -3.5 => "3.5 s", 119 => "119 s", 120 => "2 min", 7199 => "119 min", 7200 => "2 h",
      172_800 => "2 d", 1e9 => "11,574 d",
      Rational(1, 2) => "500 ms"
    }.each { |seconds, text| assert_equal text, words.duration(seconds), seconds.inspect }
  end

  def test_no_text_of_the_library_writes_a_count_or_a_duration_by_itself
    paths = Dir["#{FOLDER}/**/*.rb"].sort - ["#{FOLDER}/ringspun/jobs/words.rb"]
    found = paths.flat_map { |path| faults(File.read(path), path.delete_prefix("#{FOLDER}/")) }
    assert_empty found
  end

  def test_such_texts_are_found
    { %(x = "retry in \#{delay.round} s") => 1, %(x = "\#{many.size} jobs are there") => 1,
      %(x = "\#{Words.count(2, "job")} in all") => 0, %(x = "\#{name} holds") => 0, %(# "\#{a} jobs") => 0,
      %(x = count == 1 ? "1 job" : many) => 1, %(x = "job\#{"s" if count > 1}") => 1,
      %(x = "\#{a ? b : c} more jobs") => 1 }.each do |text, count|
      assert_equal count, faults(text, "a.rb").size, text
    end
  end

  private

  def faults(text, name)
    text.each_line.grep_v(/\A\s*#/).flat_map do |line|
      ALLOWED.reduce(line) { |left, allowed| left.gsub(allowed, "") }
             .scan(/#{NUMBER}(?: more)? #{PLURAL}|\#\{"s" if|"1 \w+"|== 1 \? "/o).map { |found| "#{name}: #{found}" }
    end
  end
end
