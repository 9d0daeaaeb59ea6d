# frozen_string_literal: true

require "test_helper"
require "optparse"

# The end of a message about a name that there is not.
class SuggestionTest < Minitest::Test
  include AnyBackend

  SUGGESTION = Ringspun.const_get(:Suggestion)
  KNOWN = %w[host port dbname].freeze

  def test_the_nearest_or_all
    assert_equal ", did you mean host?", SUGGESTION.for("hots", KNOWN)
    assert_equal ", did you mean port?", SUGGESTION.for(:prot, KNOWN.map(&:to_sym))
    assert_equal "; there are host, port, dbname", SUGGESTION.for("zzz", KNOWN)
    assert_equal "; there are host, port, dbname", SUGGESTION.for("", KNOWN)
    assert_equal ", did you mean lanes?", SUGGESTION.for("lane", KNOWN, nearest_of: [*KNOWN, "lanes"])
  end

  def test_an_option_of_a_command
    parser = OptionParser.new do |options|
      options.on("--queue NAME") {}
      options.on("-q") {}
    end
    { "--quue=a" => "invalid option: --quue=a, did you mean --queue?", "--wat" => "invalid option: --wat",
      "--queue" => "missing argument: --queue" }.each do |word, message|
      error = assert_raises(OptionParser::ParseError) { parser.parse([word]) }
      assert_equal "#{message}; --help lists the options", SUGGESTION.in_parse_error(error)
    end
  end

  def test_in_a_ruby_without_it
    answer = ruby_child('require "ringspun"; module Ringspun; puts Suggestion.for("hots", %w[host port]); end',
                        env: { "RUBYOPT" => "--disable-did_you_mean" }, fresh: "another RUBYOPT")
    assert_equal ["", "; there are host, port\n"], [answer.err, answer.out]
  end
end
