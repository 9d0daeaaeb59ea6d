# frozen_string_literal: true

require "minitest/autorun"
require "support/any_backend"
require "support/beside_llhttp"
require "support/codec_program"
require "support/plain_http"
require "support/random_messages"
require "support/seeds"

# rubies: one

# Messages that are drawn: the codec takes what a second opinion takes, with the same meaning, and refuses what that refuses, with
# one of its statuses. What it takes, llhttp takes as well. Each is taken again in other pieces, cut at every byte.
class RandomMessagesTest < Minitest::Test
  include AnyBackend
  include CodecProgram::OfATest
  include BesideLlhttp

  SEEDS = Seeds.of_the_day(600)

  %i[request response].each do |kind|
    define_method("test_#{kind}s") do
      taken = SEEDS.count { |seed| taken?(kind, RandomMessages.new(seed).public_send(kind), seed) }
      assert_operator taken, :>=, SEEDS.size / 10 if SEEDS.size > 100
      assert_operator taken, :<=, SEEDS.size * 9 / 10 if SEEDS.size > 100
    end
  end

  def test_chunked_bodies
    taken = SEEDS.count do |seed|
      bytes = RandomMessages.new(seed).chunks
      answer = codec.ask(:chunks, bytes)
      length, data, trailers = PlainHttp.chunks(bytes)
      assert_equal answer.verdict == :whole, !length.nil?, said(seed, bytes)
      next unless length

      assert_equal [length, data, trailers], [answer.length, answer.facts[:data], fields_of(answer)], said(seed, bytes)
      assert_llhttp_reads(PlainHttp.without_blanks(bytes.byteslice(0, length)), data, said(seed, bytes))
    end
    assert_operator taken, :>=, SEEDS.size / 10 if SEEDS.size > 100
  end

  private

  def said(seed, bytes) = "RINGSPUN_SEED=#{seed}: #{bytes.inspect}"

  # Whether it is whole, for both.
  def taken?(kind, bytes, seed)
    answer = codec.ask(kind, bytes)
    case opinion = PlainHttp.public_send(kind, bytes)
    when PlainHttp::Head then assert_same(opinion, answer, kind, bytes, seed)
    when PlainHttp::Refused then assert_includes opinion.statuses, answer.status, said(seed, bytes)
    else refute_equal :whole, answer.verdict, said(seed, bytes)
    end
    answer.verdict == :whole
  end

  def assert_same(opinion, answer, kind, bytes, seed)
    assert_equal [:whole, opinion.length], [answer.verdict, answer.length], "#{said(seed, bytes)} #{answer.facts}"
    assert_equal opinion.facts, answer.facts.slice(*opinion.facts.keys), said(seed, bytes)
    assert_equal opinion.fields, fields_of(answer), said(seed, bytes)
    assert_like_llhttp(kind, bytes, answer)
  end

  def assert_llhttp_reads(body, data, said)
    other = StrictLlhttp.new(:request)
    assert other.take("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"), said
    assert other.take(body.chop), "#{other.error}: #{said}"
    assert_equal 0, other.ended, said
    assert other.take(body[-1]), "#{other.error}: #{said}"
    assert_equal [1, data], [other.ended, other.body], said
  end
end
