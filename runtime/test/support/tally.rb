# frozen_string_literal: true

# What a torture has done, in one line at its end: a long run without a finding is worth what ran in it.
module Tally
  LONG = ENV.key?("RINGSPUN_TORTURE_SECONDS")
  COUNTS = Hash.new(0)

  def self.add(**counts) = counts.each { |what, count| COUNTS[what] += count }

  def self.to_s = COUNTS.map { |what, count| "#{count} #{what}" }.join(", ")

  Minitest.after_run { puts "torture on #{Ringspun.backend.name}: #{self}" if LONG }
end
