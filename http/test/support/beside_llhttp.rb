# frozen_string_literal: true

require "support/strict_llhttp"

# What the codec takes, llhttp takes as well, and sees it end at the same byte. The other way round it need not be. It knows no
# version between 1.1 and 2.0, and gets such a head as one of 1.1.
module BesideLlhttp
  private

  # @param kind [Symbol] of CodecProgram::KINDS
  # @param head [String]
  # @param answer [CodecProgram::Answer] which is whole
  def assert_like_llhttp(kind, head, answer)
    facts = answer.facts
    return unless kind == :response || StrictLlhttp::METHODS.include?(facts[:method])

    other = StrictLlhttp.new(kind)
    known = head.byteslice(0, answer.length).sub(%r{(\A| )HTTP/1\.[2-9]}n, '\1HTTP/1.1')
    assert other.take(known), "#{other.error}: #{head.inspect}"
    assert_equal fields_of(answer), other.fields.map { |name, value| [name, value.rstrip] }, head.inspect
    refute facts[:keeps_alive] && !other.keeps_alive, "llhttp closes: #{head.inspect}"
    assert_same_end(other, head, facts) unless facts[:status] == 304 # it asks its caller whether that has a body
  end

  def fields_of(answer) = answer.fields.map { |field| [field[:name], field[:value]] }

  # A length that nobody sends in a test is compared as a number.
  def assert_same_end(other, head, facts)
    ended = %w[none tunnel].include?(facts[:body]) || (facts[:body] == "length" && facts[:body_len].zero?)
    assert_equal ended ? 1 : 0, other.ended, head.inspect
    return if ended
    return assert_equal(facts[:body_len], other.content_length, head.inspect) if facts[:body_len] > 1000

    body = { "length" => "x" * facts[:body_len], "chunked" => "1\r\nx\r\n0\r\n\r\n", "close" => "x" }.fetch(facts[:body])
    assert_ends_with(other, head, body, facts[:body] == "close" ? 0 : 1)
  end

  def assert_ends_with(other, head, body, count)
    assert other.take(body.chop), "#{other.error}: #{head.inspect}"
    assert_equal 0, other.ended, head.inspect
    assert other.take(body[-1]), "#{other.error}: #{head.inspect}"
    assert_equal count, other.ended, head.inspect
  end
end
