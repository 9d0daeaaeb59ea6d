# frozen_string_literal: true

module Bench
  # One promise of a table, written as the sentence that the report prints and checked as it stands:
  #
  #   total <= 2.2 x floor               a ratio to another contender
  #   rss_per_strand <= floor + 2048     a distance to it
  #   rate >= 100_000                    a number
  #   total/floor flat within 25%        the ratio over all rows: largest / smallest
  #
  # `at ROW` restricts it to one row; without it every row has to hold. `floor` is the table's floor, whatever
  # its name; `best peer` is the peer with the least of that metric. It speaks of Ringspun, on the main backend, unless
  # another contender's name and a colon stand before it: `engine: cpu_ns <= floor + 100`.
  class Target
    Verdict = Data.define(:sentence, :met, :measured)

    NUMBER = /\d[\d_]*(?:\.\d+)?/
    OF = /(?:(?<subject>\w[\w ]*): )?/
    PLAIN = /\A#{OF}(?<metric>\w+) (?<relation><=|>=) (?<limit>#{NUMBER})(?: x (?<other>.+?))?(?: at (?<row>.+))?\z/
    OFFSET = /\A#{OF}(?<metric>\w+) (?<relation><=|>=) (?<other>.+?) \+ (?<limit>#{NUMBER})(?: at (?<row>.+))?\z/
    FLAT = %r{\A#{OF}(?<metric>\w+)/(?<other>.+?) flat within (?<limit>#{NUMBER})%\z}

    attr_reader :sentence

    def self.parse(sentence)
      kind, match = { ratio: PLAIN, offset: OFFSET, flat: FLAT }.lazy
                    .map { |name, pattern| [name, pattern.match(sentence)] }.find(&:last)
      raise ArgumentError, "not a target: #{sentence.inspect}" unless match

      new(sentence, kind, match.named_captures.transform_keys(&:to_sym))
    end

    def initialize(sentence, kind, parts)
      @sentence = sentence
      @subject = parts[:subject] || SUBJECT
      @metric = parts[:metric].to_sym
      @limit = Float(parts[:limit])
      @relation = parts[:relation]&.to_sym
      @other = parts[:other]
      @row = parts[:row]
      @kind = kind == :ratio && !@other ? :number : kind
    end

    # `result` answers rows, each of which answers label and value(contender, metric); see Bench::Result.
    def check(result)
      rows = @row ? result.rows.select { |row| row.label == @row } : result.rows
      measured = rows.map { |row| measure(row) }
      if measured.empty? || measured.include?(nil)
        return Verdict.new(sentence:, met: nil, measured: "a number is missing")
      end

      @kind == :flat ? flat_verdict(measured) : verdict(measured)
    end

    private

    def measure(row)
      ours = row.value(@subject, @metric)
      return ours if @kind == :number || ours.nil?

      theirs = row.value(@other, @metric)
      return nil if theirs.nil? || (@kind != :offset && theirs.zero?)

      @kind == :offset ? ours - theirs : ours.to_f / theirs
    end

    def verdict(measured)
      worst = @relation == :<= ? measured.max : measured.min
      Verdict.new(sentence:, met: worst.public_send(@relation, @limit), measured: show(worst))
    end

    def flat_verdict(measured)
      spread = measured.max / measured.min
      text = format("%.0f%% (%.2f x to %.2f x)", (spread - 1) * 100, measured.min, measured.max)
      Verdict.new(sentence:, met: spread <= 1 + @limit / 100, measured: text)
    end

    def show(value)
      case @kind
      when :ratio then format("%.2f x", value)
      when :offset then format("%+.0f", value)
      else Metric[@metric].brief(value)
      end
    end
  end
end
