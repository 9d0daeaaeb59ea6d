# frozen_string_literal: true

require "open3"
require "rbconfig"

# Asks the codec what comes of messages. It is a program in C, http/test/codec/ask.c, which knows no Ruby; rake builds it. The
# program also takes each message in other pieces, cut at every byte, and says so where that is not the same.
class CodecProgram
  ROOT = File.expand_path("../../..", __dir__)
  PROGRAM = "tmp/http_codec/ask"
  KINDS = { request: "q", response: "a", response_to_head: "h", chunks: "b" }.freeze

  # What came of a message.
  #
  # @!attribute verdict
  #   @return [Symbol] :whole, :part or :wrong
  # @!attribute status
  #   @return [Integer, nil] with which it is refused
  # @!attribute length
  #   @return [Integer, nil] bytes of what is whole
  # @!attribute facts
  #   @return [Hash{Symbol => Object}]
  # @!attribute fields
  #   @return [Array<Hash>] with the name, the value, what it is known as, and whether it has an underscore
  Answer = Data.define(:verdict, :status, :length, :facts, :fields)

  TEXTS = %i[upgrade method target path query host host_name reason data].freeze
  NUMBERS = %i[version body_len port status].freeze
  FLAGS = %i[keeps_alive secure expects].freeze
  private_constant :TEXTS, :NUMBERS, :FLAGS

  # The one of a test, which ends with it.
  module OfATest
    def teardown
      @codec&.close
      super
    end

    def codec = @codec ||= CodecProgram.new
  end

  def self.build
    @build ||= Open3.capture2e(RbConfig.ruby, "-S", "rake", "--silent", PROGRAM, chdir: ROOT).tap do |output, status|
      raise output unless status.success?
    end
  end

  def initialize
    CodecProgram.build
    @in, @out, @thread = Open3.popen2(File.join(ROOT, PROGRAM))
    @in.binmode
  end

  def close
    [@in, @out].each(&:close)
    @thread.value
  end

  # @param kind [Symbol] of KINDS
  # @param bytes [String]
  # @return [Answer]
  def ask(kind, bytes)
    @in.write(KINDS.fetch(kind), [bytes.bytesize].pack("N"), bytes)
    @in.flush
    line = @out.gets or raise "the codec has ended: #{@thread.value} at #{bytes.inspect}"
    read(line.chomp)
  end

  private

  def read(line)
    verdict, rest = line.split(" ", 2)
    case verdict
    when "whole", "part" then whole_or_part(verdict.to_sym, rest.to_s)
    when "wrong" then Answer.new(:wrong, rest.to_i, nil, { why: rest.split(" ", 3).last }, [])
    else raise line
    end
  end

  # A part has data where it is one of a body.
  def whole_or_part(verdict, rest)
    raise rest if rest.include?("scanned again")

    length, *words = rest.split
    pairs = words.map { |word| word.split("=", 2) }
    first = pairs.index { |key, _| key == "name" } || pairs.size
    facts = pairs.take(first).to_h { |key, value| [key.to_sym, value_of(key.to_sym, value)] }
    Answer.new(verdict, nil, length&.to_i, facts, pairs.drop(first).each_slice(4).map { |slice| field(slice.to_h) })
  end

  def value_of(key, value)
    return [value].pack("H*") if TEXTS.include?(key)
    return Integer(value) if NUMBERS.include?(key)

    FLAGS.include?(key) ? value == "1" : value
  end

  def field(words)
    { name: [words["name"]].pack("H*"), value: [words["value"]].pack("H*"), known: words["known"],
      underscore: words["underscore"] == "1" }
  end
end
