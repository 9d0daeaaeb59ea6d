# frozen_string_literal: true

require "yaml"

# What random programs have found and what is not mended yet: test/random/expected_failures.yml of each gem. A failure that
# matches an entry of its generator is counted and not raised; an entry goes with the mend.
#
#   - generator: streams
#     pattern: "the words of the failure, a regular expression"
#     defect: what is wrong, in one sentence
class ExpectedFailures
  Entry = Data.define(:generator, :pattern, :defect)

  # @param path [String] the YAML file
  # @param generator [String] whose entries count
  def initialize(path, generator)
    entries = File.exist?(path) ? YAML.safe_load_file(path) || [] : []
    @entries = entries.map { |entry| Entry.new(**entry.transform_keys(&:to_sym)) }
                      .select { |entry| entry.generator == generator }
    @counts = Hash.new(0)
  end

  # @param message [String] of a failure
  # @return [Boolean] true when it is known
  def known?(message)
    entry = @entries.find { |each| message.match?(Regexp.new(each.pattern, Regexp::MULTILINE)) }
    @counts[entry] += 1 if entry
    !entry.nil?
  end

  # @return [String] how often each was met, in a line each
  def to_s = @counts.map { |entry, count| "#{count} x expected: #{entry.defect}" }.join("\n")
end
