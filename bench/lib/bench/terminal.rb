# frozen_string_literal: true

module Bench
  # What a terminal can show and a file cannot: bars, and colours, unless NO_COLOR (https://no-color.org) forbids them. On
  # anything else texts stay as they are.
  class Terminal
    COLOURS = { green: 32, red: 31, faint: 2 }.freeze

    WIDTH = 40
    # From nothing to a whole block.
    EIGHTHS = ["", "\u258F", "\u258E", "\u258D", "\u258C", "\u258B", "\u258A", "\u2589"].freeze
    BLOCK = "\u2588"
    private_constant :COLOURS, :EIGHTHS, :BLOCK

    # @param out [IO]
    def initialize(out)
      @tty = out.tty?
      @coloured = @tty && ENV["NO_COLOR"].to_s.empty?
    end

    # @param colour [Symbol, nil] of {COLOURS}
    # @return [String]
    def paint(text, colour) = @coloured && colour ? "\e[#{COLOURS.fetch(colour)}m#{text}\e[0m" : text

    # A bar for each, the longest as wide as {WIDTH}.
    # @param values [Hash{String => Numeric}] name => length
    # @return [Array<String>] empty where there is no terminal
    def bars(values)
      return [] if !@tty || values.empty? || !values.values.max.positive?

      width = values.keys.map(&:size).max
      values.map { |name, value| "#{name.ljust(width)}  #{bar(value / values.values.max.to_f)}" }
    end

    private

    # One that is too short to be seen would look like a missing one.
    def bar(share)
      eighths = [(share * WIDTH * 8).round, 1].max
      (BLOCK * (eighths / 8)) + EIGHTHS[eighths % 8]
    end
  end
end
