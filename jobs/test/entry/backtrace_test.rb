# frozen_string_literal: true

require "jobs_helper"

class BacktraceTest < Minitest::Test
  include AnyBackend

  Backtrace = Ringspun::Jobs.const_get(:Backtrace)

  LINES = ["a.rb:1:in `x'", "größe.rb:2:in `y'"].freeze

  def test_there_and_back
    text = Backtrace.dump(LINES)
    assert_match(%r{\A[A-Za-z0-9+/]+=*\z}, text)
    assert_equal LINES, Backtrace.load(text)
  end

  def test_as_sidekiq_writes_it
    text = [Zlib::Deflate.deflate(JSON.generate(LINES))].pack("m0")
    assert_equal LINES, Backtrace.load(text)
  end

  def test_who_does_not_deflate_writes_an_array
    assert_equal LINES, Backtrace.load([*LINES, 5])
  end

  def test_what_cannot_be_read_is_none
    [nil, 5, "", "%", "AAAA", [Zlib::Deflate.deflate("{")].pack("m0"), [Zlib::Deflate.deflate("{}")].pack("m0")].each do |value|
      assert_nil Backtrace.load(value), value.inspect
    end
  end

  def test_what_inflates_too_far_is_none
    bomb = [Zlib::Deflate.deflate(JSON.generate(["x" * 64 * 1024 * 1024]))].pack("m0")
    assert_operator bomb.bytesize, :<, Backtrace::BYTES_MAX
    assert_nil Backtrace.load(bomb)
    assert_nil Backtrace.load("A" * (Backtrace::BYTES_MAX + 1))
  end

  def test_bytes_that_are_no_text_do_not_stop_it
    assert_equal ["a\u{fffd}"], Backtrace.load(Backtrace.dump(["a\xff"]))
  end
end
