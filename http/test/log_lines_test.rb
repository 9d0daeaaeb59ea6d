# frozen_string_literal: true

require "http_helper"
require "json"
require "support/seeds"

# rubies: one

# Lines of the access log beside a second opinion in plain Ruby, for whatever clients and programs have put into a request.
class HTTPLogLinesTest < Minitest::Test
  include AnyBackend

  LINE = Ringspun::HTTP.const_get(:LogLine)

  # The forms once more: slowly, with a Hash between.
  module Plain
    UNSAFE = /[^\x20\x21\x23-\x5b\x5d-\x7e]/n
    FIELDS = { method: "REQUEST_METHOD", path: "REQUEST_URI", protocol: "SERVER_PROTOCOL", host: "HTTP_HOST",
               referer: "HTTP_REFERER", agent: "HTTP_USER_AGENT", user: "REMOTE_USER" }.freeze

    module_function

    def safe(text) = text.to_s.empty? ? "-" : bare(text)
    def bare(text) = text.to_s.b.gsub(UNSAFE) { |byte| format("\\x%02x", byte.ord) }

    def common(more, env, time, client, status, bytes, seconds, happened)
      line = env.any? ? %w[REQUEST_METHOD REQUEST_URI SERVER_PROTOCOL].map { |key| bare(env[key]) }.join(" ") : "-"
      own = env
      ends = " \"#{safe(own["HTTP_REFERER"])}\" \"#{safe(own["HTTP_USER_AGENT"])}\"" if more
      "#{client} - #{safe(own["REMOTE_USER"])} [#{time}] \"#{line}\" #{status || "-"} #{bytes.zero? ? "-" : bytes}#{ends} " \
        "#{format("%.6f", (seconds * 1_000_000).round.quo(1_000_000))}#{" #{happened}" unless happened == :answered}\n"
    end

    def json(env, milliseconds, pid, client, route, status, bytes, received, seconds, happened, error)
      time = Time.at(milliseconds / 1000, milliseconds % 1000, :millisecond).utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ")
      texts = FIELDS.transform_values { |key| env[key]&.then { |value| clean(value) } }
      entry = { time:, pid:, client:, **texts, route: route && clean(route), status:, bytes:, received:,
                seconds: seconds.round(6), happened: happened.to_s, error: }
      "{#{entry.compact.map { |name, value| "\"#{name}\":#{value.is_a?(String) ? text(value) : value}" }.join(",")}}\n"
    end

    def clean(text)
      text = text.to_s.dup.force_encoding(Encoding::UTF_8)
      text.valid_encoding? ? text : bare(text)
    end

    def text(value) = JSON.generate(value.dup.force_encoding(Encoding::UTF_8))
  end

  NASTY = ["", "/", "\"", "\\", "\\x22", "\x00", "\x1f", "\x7f", "\x80", "\xff", "\r\n", "\t", "\b\f\v\e[31m", "\u00fc",
           "\u2028", "\u{1f600}", "\xe2\x80", "%0a", "a" * 300].freeze
  VALUES = [nil, 7, :word, "ada", "l\u00e4uft", "in UTF-16".encode(Encoding::UTF_16LE),
            "\xe4".dup.force_encoding("ISO-8859-1")].freeze
  HAPPENED = %i[answered refused failed timed_out gone cancelled hijacked upgraded].freeze
  # About the borders of seconds, and where a Float of Ruby begins to have an exponent.
  SECONDS = [0.0, 1e-6, 9e-6, 1e-5, 2.3e-5, 9.9e-5, 1e-4, 0.1, 0.999999, 0.9999996, 1.0, 1.5, 12.000001, 59.9999994,
             86_400.25].freeze
  KEYS = %w[REQUEST_METHOD REQUEST_URI SERVER_PROTOCOL HTTP_HOST HTTP_REFERER HTTP_USER_AGENT REMOTE_USER].freeze

  def one_of(list) = list[@random.rand(list.size)]

  # What a client sends has no encoding, and may be anything; what a program has put there need not be a String.
  def value
    case @random.rand(8)
    when 0 then one_of(VALUES)
    when 1 then @random.bytes(@random.rand(40))
    when 2 then one_of(NASTY)
    else Array.new(@random.rand(4)) { one_of([*NASTY, "/path?a=b", "Mozilla/5.0 (X11; rv:128.0)"]) }.map(&:b).join
    end
  end

  def env
    return {} if @random.rand(10).zero?

    KEYS.to_h { |key| [key, value] }.tap { |env| env.delete(one_of(KEYS)) if @random.rand(3).zero? }
  end

  def seconds = @random.rand(2).zero? ? one_of(SECONDS) : @random.rand(10**@random.rand(0..9)) / 1_000_000.0

  # Second after second, just before and just behind their borders, and back.
  def milliseconds = (1_796_000_000_000 + (@random.rand(-3..3) * 1000)) + one_of([0, 1, 9, 10, 99, 100, 500, 999])

  def bytes = one_of([0, 1, 14, 2**31, 2**63])

  def test_every_line_is_that_of_plain_ruby
    Seeds.of_the_day(2000).each do |seed|
      @random = Random.new(seed)
      rest = [one_of([nil, 100, 200, 404, 599]), bytes]
      common = [one_of([true, false]), env, "29/Nov/2026:09:00:00 +0000", "203.0.113.7", *rest, seconds, one_of(HAPPENED)]
      assert_same_line Plain.common(*common), LINE.common(*common), seed
      json = [env, milliseconds, 4711, "2001:db8::1", one_of([nil, *NASTY]), *rest, bytes, seconds, one_of(HAPPENED),
              one_of([nil, "RuntimeError"])]
      assert_same_line Plain.json(*json), LINE.json(*json), seed
      assert_predicate LINE.json(*json), :valid_encoding?
    end
  end

  # A method of the program's runs before anything of the line is there.
  def test_a_value_that_logs_itself_and_one_that_raises
    arguments = [true, {}, "now", "a", 200, 6, 0.5, :answered]
    inner = Object.new
    inner.define_singleton_method(:to_s) { LINE.common(*arguments) && "inner" }
    line = LINE.common(false, { "REMOTE_USER" => inner, "REQUEST_METHOD" => "GET" }, *arguments.drop(2))
    assert_equal "a - inner [now] \"GET  \" 200 6 0.500000\n", line
    failing = Object.new
    def failing.to_s = raise("no text")
    assert_raises(RuntimeError) { LINE.common(false, { "REMOTE_USER" => failing }, *arguments.drop(2)) }
  end

  def test_what_is_no_text_and_no_number
    arguments = [true, {}, "now", "a", 200, 6, 0.5, :answered]
    { 2 => nil, 3 => 5, 4 => "200", 6 => "long", 7 => "answered" }.each do |at, wrong|
      assert_raises(TypeError) { LINE.common(*arguments.dup.tap { |given| given[at] = wrong }) }
    end
    assert_equal "a - - [now] \"-\" - - \"-\" \"-\" 0.000000\n", LINE.common(true, {}, "now", "a", nil, 0, Float::NAN, :answered)
  end

  private

  def assert_same_line(expected, line, seed)
    assert_equal expected.b, line.b, "RINGSPUN_SEED=#{seed}"
    assert_equal Encoding::UTF_8, line.encoding
    assert_equal 1, line.count("\n")
  end
end
