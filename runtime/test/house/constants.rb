# frozen_string_literal: true

# Numbers that have a name, in C and in Ruby. The name says what for. Why it is that number and no other, and where a kernel, a
# server or a standard says so, is to stand in a comment: at the end of the line, or above the group of lines without a gap that
# it is in. Nought and one explain themselves.
class Constants
  NUMBER = /(?<![\w.])(?:0x\h+|\d[\d_]*)/
  # A define with parameters is no constant.
  C = {
    constant: /\A\s*#\s*define\s+\w+\s+(?<value>\S.*)|\A(?:static\s+)?const\s+[\w ]+\w\s+=\s*(?<value>.*)/,
    comment: %r{/\*.*?(?:\*/|\z)}, string: /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/, comment_ends: %r{\A\s*/?\*.*\*/\s*\z}
  }.freeze
  # Not what is made by a call, nor a list or table: its text says more than a number.
  RUBY = {
    constant: /\A\s*[A-Z][A-Z0-9_]*\s+=\s+(?<value>\(?[\d.][\d_.* ()\-+\/]*(?:#.*)?)\z/,
    comment: /(?:\A|\s)#.*/, string: /"[^"]*"/, comment_ends: /\A\s*#/
  }.freeze

  # @param path [String] by its ending of C or of Ruby
  # @return [Array<String>] lines with a number whose comment is missing, as `number: text`
  def self.silent(path, text) = new(path.end_with?(".rb") ? RUBY : C).silent(text)

  def initialize(form)
    @form = form
  end

  def silent(text)
    previous = ""
    grouped = nil # whether a comment stands above the group of constants that a line is in; nil: it is in none
    text.each_line(chomp: true).with_index(1).filter_map do |line, number|
      constant = line.match(@form[:constant])
      grouped = constant ? grouped || (grouped.nil? && previous.match?(@form[:comment_ends])) : nil
      previous = line
      "#{number}: #{line.strip}" if constant && !grouped && !line.match?(@form[:comment]) && surprises?(constant[:value])
    end
  end

  private

  def surprises?(value)
    numbers = value.gsub(@form[:string], "").gsub(@form[:comment], "").scan(NUMBER)
    numbers.any? { |number| Integer(number.sub(/\A0+(?=\d)/, "")) > 1 }
  end
end
