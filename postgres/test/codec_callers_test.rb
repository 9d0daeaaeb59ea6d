# frozen_string_literal: true

require "postgres_helper"

# What the codec exports is what bytes of users meet: a reader that only tests and the fuzzer call shows nothing of the client.
class CodecCallersTest < Minitest::Test
  FOLDER = File.expand_path("../ext/ringspun_postgres", __dir__)

  # Functions of C, by the names that they use.
  class Calls
    COMMENT = %r{/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+'}m # and texts
    DIRECTIVE = /^[ \t]*#(?:[^\n]*\\\n)*[^\n]*/
    # In these sources a function's head stands at the beginning of a line, and its last brace does, or ends the line of the head.
    FUNCTION = /^[A-Za-z][^\n;={}]*?\b(\w+)\((?:[^;{}]*)\)\s*\{(?:[^\n]*\}$|.*?^\})/m
    DECLARED = /\b(rpg_\w+)\(/
    private_constant :COMMENT, :DIRECTIVE, :FUNCTION, :DECLARED

    # @param codec [Hash{String => String}] path => text
    # @param client [Hash{String => String}]
    def initialize(codec, client)
      @headers = bare(codec.select { |path, _| path.end_with?(".h") })
      @functions = bare(codec).values.flat_map { |text| functions_of(text) }.group_by(&:first)
      @client = names_in(bare(client).values.join)
    end

    # @return [Array<String>] what headers of the codec declare and define
    def exported = @headers.values.flat_map { |text| text.scan(DECLARED).flatten }.uniq.sort

    # @return [Array<String>] those that the client does not use, and nothing that it uses either
    def unused = exported - reached

    private

    def bare(texts) = texts.transform_values { |text| text.gsub(COMMENT, " ").gsub(DIRECTIVE, "") }
    def names_in(text) = text.scan(/\w+/).uniq

    def functions_of(text)
      found = []
      text.scan(FUNCTION) { found << [Regexp.last_match(1), names_in(Regexp.last_match(0)) - [Regexp.last_match(1)]] }
      found
    end

    def reached
      seen = []
      left = @client & @functions.keys
      until left.empty?
        seen |= left
        left = (left.flat_map { |name| @functions[name].flat_map(&:last) } & @functions.keys) - seen
      end
      seen
    end
  end

  def test_the_client_uses_all_that_the_codec_exports
    calls = Calls.new(texts("codec"), texts("client"))
    assert_operator calls.exported.size, :>, 40
    assert_empty calls.unused
  end

  def test_what_only_tests_use_is_found
    codec = { "codec/a.h" => "void rpg_a(int x);\nstatic inline int rpg_b(int x) { return x; }\n" \
                             "void rpg_c(void);\nvoid rpg_d(void);\n",
              "codec/a.c" => "static void own(int x) {\n    rpg_b(x);\n}\n\nvoid rpg_a(int x) { own(x); }\n" \
                             "void rpg_c(void) {\n    rpg_d();\n}\n\nvoid rpg_d(void) {}\n" }
    client = { "client/b.c" => "/* rpg_c(); */ void b(void) { rpg_a(1); say(\"rpg_c();\"); }" }
    assert_equal %w[rpg_c rpg_d], Calls.new(codec, client).unused
  end

  private

  def texts(folder) = Dir[File.join(FOLDER, folder, "*.{c,h}")].to_h { |path| [path, File.read(path)] }
end
