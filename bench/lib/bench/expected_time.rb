# frozen_string_literal: true

require "json"

module Bench
  # How long a run takes, by what each contender took in the run that is kept.
  class ExpectedTime
    # Seconds of a sample beside what it measures: a process with the libraries, the warm-up, and for some tables servers.
    BESIDE = 0.7

    # @param data [Hash] as {JsonReport} has it
    def initialize(data = JSON.parse(File.read(Documents::RESULTS.first)))
      @seconds = data["tables"].flat_map { |table| table["rows"] }.flat_map { |row| row["contenders"] }
                               .filter_map { |contender| contender["medians"]["real"] }
                               .map { |seconds| [seconds, Sampler::TIME_LIMIT].min } # some tables add up times of jobs
    end

    # @param samples [Integer] of each
    # @return [Float] seconds for all tables
    def of_all(samples) = samples * @seconds.sum { |seconds| seconds + BESIDE }

    # @return [String] the same in words
    def words(samples)
      minutes = (of_all(samples) / 60).ceil
      minutes < 90 ? "#{minutes} minutes" : "#{(minutes / 60.0).round(1)} hours"
    end
  end
end
