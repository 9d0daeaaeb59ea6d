# frozen_string_literal: true

# What random programs have found and what is not mended yet. On CRuby the class of that name reads a YAML file, of which mruby
# has none: here they are a list. A failure that has the words of an entry of its generator is counted and not raised; an entry
# goes with the mend.
class ExpectedFailures
  # generator => [[words of the failure, what is wrong in one sentence]]
  ALL = {}.freeze

  def initialize(_path, generator)
    @entries = ALL.fetch(generator, [])
    @counts = Hash.new(0)
  end

  def known?(message)
    words, = @entries.find { |each, _| message.include?(each) }
    @counts[words] += 1 if words
    !words.nil?
  end

  def to_s
    met = @entries.select { |words, _| @counts.key?(words) }
    met.map { |words, defect| "#{@counts[words]} x expected: #{defect}" }.join("\n")
  end
end
