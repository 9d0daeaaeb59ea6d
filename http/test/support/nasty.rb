# frozen_string_literal: true

# The tables of messages in codec/*.tsv.
module Nasty
  FOLDER = File.expand_path("../codec", __dir__)
  ESCAPES = { "r" => "\r", "n" => "\n", "t" => "\t", "0" => "\0", "\\" => "\\" }.freeze

  # A row: what is expected, the message, and why.
  Row = Data.define(:line, :expected, :bytes, :why)

  # @param name [String] of the file
  # @return [Array<Row>]
  def self.rows(name)
    lines = File.readlines(File.join(FOLDER, name), chomp: true).each.with_index(1)
    lines.reject { |line, _| line.start_with?("#") }.map do |line, number|
      expected, message, why = line.split("\t")
      raise "#{name}:#{number} has no reason" unless why

      Row.new("#{name}:#{number}", bytes(expected), bytes(message), why)
    end
  end

  # @param text [String] with escapes, and with {a*3} for aaa
  # @return [String]
  def self.bytes(text)
    long = text.gsub(/\{([^{}]+)\*(\d+)\}/) { Regexp.last_match(1) * Regexp.last_match(2).to_i }
    long.b.gsub(/\\(?:x(\h\h)|(.))/n) { (hex = Regexp.last_match(1)) ? hex.hex.chr : ESCAPES.fetch(Regexp.last_match(2)) }
  end
end
