# frozen_string_literal: true

require "rbs"

# For tests of every method that takes a span of time: which of them the signatures name, and the values to try.
module Spans
  ROOT = File.expand_path("../../..", __dir__)
  # Names of parameters that are spans of time, whatever type they are said to have.
  NAMES = /\A(timeout|within|deadline|seconds|interval|duration|delay|grace|pause|.*_(timeout|delay|seconds|lifetime))\z/

  # Like ActiveSupport::Duration: in Ruby it says that it is a Numeric, and in C it is none.
  class Duration
    def initialize(value)
      @value = value
    end

    def to_f = @value.to_f
    def to_s = @value.to_s
    def inspect = "#{@value} seconds"
    def is_a?(kind) = kind == Duration || @value.is_a?(kind)
    alias kind_of? is_a?

    private

    def respond_to_missing?(name, _all = false) = @value.respond_to?(name)
    def method_missing(...) = @value.public_send(...)
  end

  # The least that Kernel#sleep takes.
  Bare = Data.define(:value) do
    def divmod(divisor) = value.divmod(divisor)
  end

  # Limits that have passed: each is to do what 0 does.
  PASSED = [-1, -0.25, -1r, -(10**30), -Float::INFINITY, Duration.new(0), Duration.new(-2), Duration.new(-0.5),
            Bare.new(-1)].freeze
  # What is no span of time.
  WRONG = ["1", :one, Float::NAN, Complex(1, 1), Time.at(0), [1], Object.new].freeze

  def self.spellings(number)
    [number, number.to_f, number.rationalize, Duration.new(number), Duration.new(number.to_f), Bare.new(number)]
  end

  # @return [Array<String>] "Class#method parameter" for each parameter in the signatures of that gem that is a span of time
  def self.said_in(gem)
    Dir[File.join(ROOT, gem, "sig/*.rbs")].sort.flat_map do |path|
      _, _, declarations = RBS::Parser.parse_signature(RBS::Buffer.new(name: path, content: File.read(path)))
      declarations.flat_map { |each| Reader.new.read(each, "") }
    end.uniq.sort
  end

  # Finds the spans of time in one declaration.
  class Reader
    def read(declaration, space)
      return [] unless declaration.respond_to?(:members)

      name = "#{space}#{declaration.name}"
      declaration.members.flat_map do |member|
        case member
        when RBS::AST::Members::MethodDefinition then of_method(member, name)
        when RBS::AST::Members::AttrAccessor then span?(member.type) ? ["#{name}##{member.name}="] : []
        else read(member, "#{name}::")
        end
      end
    end

    private

    def of_method(member, name)
      full = "#{name}#{member.singleton? ? "." : "#"}#{member.name}"
      member.overloads.flat_map { |overload| of_function(overload.method_type.type, full) }
    end

    def of_function(function, full)
      positional = function.required_positionals + function.optional_positionals + function.trailing_positionals
      named = positional.map { |each| [each.name, each.type] } +
              function.required_keywords.merge(function.optional_keywords).map { |key, each| [key, each.type] }
      named.select { |key, type| span?(type) || (type.to_s != "untyped" && NAMES.match?(key.to_s)) }
           .map { |key, _| full.end_with?("=") ? full : "#{full} #{key}" }
    end

    def span?(type) = type.to_s.match?(/\bseconds\b/)
  end
  private_constant :Reader
end
