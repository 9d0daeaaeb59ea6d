# frozen_string_literal: true

require "minitest/autorun"
require "support/any_backend"
require "support/beside_llhttp"
require "support/codec_program"
require "support/nasty"
require "support/plain_http"

# rubies: one
# inputs: http, rakelib/codecs.rake, Gemfile.lock

# The messages of the tables, as the codec sees them, a second opinion, and llhttp.
class NastyMessagesTest < Minitest::Test
  include AnyBackend
  include CodecProgram::OfATest
  include BesideLlhttp

  HEADS = Nasty.rows("nasty_heads.tsv").freeze
  BODIES = Nasty.rows("nasty_bodies.tsv").freeze

  def test_there_are_some
    assert_operator HEADS.size, :>=, 200
    assert_operator BODIES.size, :>=, 80
    assert_empty (HEADS + BODIES).group_by(&:bytes).values.select { |rows| rows.size > 1 }.map { |rows| rows.map(&:line) }
  end

  def test_a_head_is_refused_with_its_status_or_framed_as_the_table_says
    wrong = HEADS.reject { |row| row.expected == said_of_head(ask(:request, row.bytes)) }
    assert_empty(wrong.map { |row| "#{row.line} (#{row.why}): #{said_of_head(ask(:request, row.bytes))}" })
  end

  def test_a_second_opinion_says_so_too
    HEADS.each do |row|
      case opinion = PlainHttp.request(row.bytes)
      when PlainHttp::Refused then assert_includes opinion.statuses, row.expected.to_i, row.line
      when PlainHttp::Head
        assert_equal row.expected, framing(opinion.facts), row.line
        assert_equal opinion.facts, ask(:request, row.bytes).facts.slice(*opinion.facts.keys), row.line
      else refute_equal :whole, ask(:request, row.bytes).verdict, row.line
      end
    end
  end

  def test_llhttp_takes_each_head_that_is_taken_with_the_same_framing
    HEADS.reject { |row| row.expected.to_i.positive? }.each do |row|
      assert_like_llhttp(:request, row.bytes, ask(:request, row.bytes))
    end
  end

  def test_a_body_is_refused_with_its_status_or_has_the_data_of_the_table
    wrong = BODIES.reject { |row| row.expected == said_of_body(ask(:chunks, row.bytes)) }
    assert_empty(wrong.map { |row| "#{row.line} (#{row.why}): #{said_of_body(ask(:chunks, row.bytes))}" })
  end

  def test_a_second_opinion_takes_the_same_bodies
    BODIES.each do |row|
      answer = ask(:chunks, row.bytes)
      length, data, trailers = PlainHttp.chunks(row.bytes)
      assert_equal answer.verdict == :whole, !length.nil?, row.line
      assert_equal [length, data, trailers], [answer.length, answer.facts[:data], fields_of(answer)], row.line if length
    end
  end

  private

  def ask(kind, bytes) = codec.ask(kind, bytes)

  def said_of_head(answer) = answer.verdict == :whole ? framing(answer.facts) : (answer.status || answer.verdict).to_s
  def framing(facts) = facts[:body] == "length" ? "length #{facts[:body_len]}" : facts[:body]

  def said_of_body(answer)
    return (answer.status || answer.verdict).to_s unless answer.verdict == :whole

    ["whole", answer.facts[:data]].reject(&:empty?).join(" ").b
  end
end
