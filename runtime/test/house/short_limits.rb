# frozen_string_literal: true

require "prism"

# Finds limits of less than a second in a test, other than those that must pass: a machine that has no processor for the test
# during such a time makes it fail. A limit is a literal:
#
# - `timeout(0.1)`, `with_timeout(0.1)` and `join(0.1)`;
# - an option whose name ends with timeout, limit, within or deadline.
#
# A limit must pass, as the code says, where something around it expects that: assert_raises of a timeout and others like it, or a
# `rescue` in the same line. One in a simulation has virtual time. Another says so in a comment at the end of its line:
# `# must pass`. Programs in heredocs are looked at as well. A pause (`sleep`) is no limit, and is left to `rake test:held_up`.
class ShortLimits
  Found = Data.define(:test, :limit, :line) do
    def to_s = "#{test}: #{limit}"
  end

  CALLS = %i[timeout with_timeout join].freeze
  OPTION = /(\A|_)(timeout|limit|within|deadline)\z/
  # Each of these with an error of that name.
  RAISES = %i[assert_raises assert_ends_with assert_failed assert_interrupted assert_server].freeze
  LATE = /Timeout|Late/
  MUST_PASS = %i[error_of class_and_message assert_late assert_nil refute].freeze
  VIRTUAL = %i[simulate simulated].freeze
  # A module of this name runs each test on a virtual clock.
  SIMULATION = /\b(OnSimulation|Simulated|OnScriptedPool)\b/
  COMMENT = /# must pass\b/

  # @param source [String] a test file
  # @return [Array<Found>]
  def self.in(source) = new(source).found

  # @param first_line [Integer] where the source stands
  # @param test [String, nil] in which
  def initialize(source, first_line = 1, test = nil)
    @source = source
    @first_line = first_line
    @test = test
  end

  # Nothing, where the source is no Ruby.
  def found
    @found = []
    result = Prism.parse(@source)
    @lines = @source.lines
    visit(result.value, @test, false) if result.success?
    @found
  end

  private

  # @param excused [Boolean] whether the code around it says that it must pass, or is simulated
  def visit(node, test, excused)
    case node
    when Prism::ClassNode then excused ||= simulated?(node)
    when Prism::RescueModifierNode then excused = true
    when Prism::DefNode, Prism::ConstantWriteNode then test ||= node.name.to_s
    when Prism::CallNode
      test ||= defined_by(node)
      excused ||= excuse?(node)
      note(node, test) unless excused
    when Prism::StringNode, Prism::InterpolatedStringNode then note_program(node, test) unless excused
    end
    node.compact_child_nodes.each { |child| visit(child, test, excused) }
  end

  # What a class inherits, or gets from a module, is looked at where it stands.
  def simulated?(node)
    node.body&.compact_child_nodes.to_a.any? do |child|
      child.is_a?(Prism::CallNode) && child.name == :include && child.arguments&.slice.to_s.match?(SIMULATION)
    end
  end

  def excuse?(call)
    MUST_PASS.include?(call.name) || VIRTUAL.include?(call.name) ||
      (RAISES.include?(call.name) && call.arguments&.slice.to_s.match?(LATE)) ||
      (call.name == :run && call.receiver&.slice.to_s.end_with?("Simulation"))
  end

  # The name that define_method is called with, as far as it is known.
  def defined_by(call)
    call.arguments&.arguments&.first&.slice&.delete('":') if call.name == :define_method
  end

  def note(call, test)
    arguments = call.arguments&.arguments.to_a
    limits = CALLS.include?(call.name) && short?(arguments.first) ? ["#{call.name}(#{arguments.first.slice})"] : []
    options = arguments.grep(Prism::KeywordHashNode).flat_map(&:elements).grep(Prism::AssocNode)
    limits += options.select { |option| option.key.slice.delete_suffix(":").match?(OPTION) && short?(option.value) }.map(&:slice)
    line = call.location.start_line
    return if @lines[line - 1].match?(COMMENT)

    limits.each { |limit| @found << Found.new(test: test.to_s, limit: limit, line: @first_line + line - 1) }
  end

  # One of two limits counts as well: `slow ? 10 : 0.5`.
  def short?(node)
    case node
    when Prism::FloatNode, Prism::RationalNode then Float(node.slice.delete("_r")).then { |limit| limit.positive? && limit < 1 }
    when Prism::IfNode, Prism::ElseNode, Prism::StatementsNode, Prism::ParenthesesNode
      node.compact_child_nodes.any? { |child| short?(child) }
    end
  end

  # What a heredoc holds may be Ruby.
  def note_program(node, test)
    return unless node.opening&.start_with?("<<")

    parts = node.is_a?(Prism::StringNode) ? [node] : node.parts
    text = parts.map { |part| part.is_a?(Prism::StringNode) ? part.content : "x" }.join
    first = parts.first&.location&.start_line or return
    @found.concat(ShortLimits.new(text, @first_line + first - 1, test).found)
  end
end
