# frozen_string_literal: true

require "bench/table"

module Bench
  # What is said of targets that the kept run misses: `withdrawn` with the reason, a floor or what Ruby takes by itself, or
  # `open` with the next idea. Who misses another one, or misses it elsewhere, sees it as missed.
  module MissedTargets
    FILE = File.join(ROOT, "bench/missed_targets.tsv")
    WORDS = %w[withdrawn open].freeze

    # `word` is one of {WORDS}.
    Reason = Data.define(:table, :sentence, :word, :text)

    # @return [Array<Reason>] in the order of the file
    def self.all = @all ||= File.readlines(FILE, chomp: true).map { |line| Reason.new(*line.split("\t", 4)) }

    # @param table [String] its name
    # @param sentence [String] the target
    # @return [Reason, nil]
    def self.of(table, sentence) = all.find { |reason| reason.table == table && reason.sentence == sentence }
  end
end
