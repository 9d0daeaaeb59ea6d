# frozen_string_literal: true

module Bench
  # A promise of a table, written as the sentence that the report prints:
  #
  #   total <= 2.2 x floor               a ratio to another contender
  #   rss_per_strand <= floor + 2048     a distance to it
  #   rate >= 100_000                    a number
  #   total/floor flat within 25%        the ratio over all rows: largest / smallest
  #   cpu_ns flat within 100%            the number itself over all rows
  #   real at 10x40 <= 1.1 x at 400x1    a ratio of one row to another
  #
  # `at ROW` restricts it to one row, and `at ROW and ROW` to several; without it, it must hold in every row. `floor` is the
  # table's first floor, whatever its name; `best floor` and `best peer` are those with the lowest value. It is about Ringspun on
  # the main backend, unless another contender's name and a colon come first: `engine: cpu_ns <= floor + 100`.
  class Target
    Verdict = Data.define(:sentence, :met, :measured)

    NUMBER = /\d[\d_]*(?:\.\d+)?/
    OF = /(?:(?<subject>\w[\w -]*): )?/
    PLAIN = /\A#{OF}(?<metric>\w+) (?<relation><=|>=) (?<limit>#{NUMBER})(?: x (?<other>.+?))?(?: at (?<row>.+))?\z/
    OFFSET = /\A#{OF}(?<metric>\w+) (?<relation><=|>=) (?<other>.+?) \+ (?<limit>#{NUMBER})(?: at (?<row>.+))?\z/
    FLAT = %r{\A#{OF}(?<metric>\w+)(?:/(?<other>.+?))? flat within (?<limit>#{NUMBER})%(?: at (?<row>.+))?\z}
    ACROSS = /\A#{OF}(?<metric>\w+) at (?<row>.+) (?<relation><=|>=) (?<limit>#{NUMBER}) x at (?<base>.+)\z/

    attr_reader :sentence

    # The labels of those that it names.
    attr_reader :rows

    def self.parse(sentence)
      kind, match = { ratio: PLAIN, offset: OFFSET, flat: FLAT, across: ACROSS }.lazy
                    .map { |name, pattern| [name, pattern.match(sentence)] }.find(&:last)
      target = new(sentence, kind, match.named_captures.transform_keys(&:to_sym)) if match
      raise ArgumentError, "not a target: #{sentence.inspect}" if target.nil? || (kind == :across && target.rows.size != 2)

      target
    end

    def initialize(sentence, kind, parts)
      @sentence = sentence
      @subject = parts[:subject] || SUBJECT
      @metric = parts[:metric].to_sym
      @limit = Float(parts[:limit])
      @relation = parts[:relation]&.to_sym
      @other = parts[:other]
      @rows = parts.values_at(:row, :base).compact.flat_map { |labels| labels.split(" and ") }
      @kind = kind == :ratio && !@other ? :number : kind
    end

    # `result` has rows, each with label and value(contender, metric); see Bench::Result.
    def check(result)
      measured = rows_of(result).map { |row| row && measure(row) }
      if measured.include?(nil)
        return Verdict.new(sentence:, met: nil, measured: "a number is missing")
      end

      case @kind
      when :flat then flat_verdict(measured)
      when :across then verdict([measured.first.to_f / measured.last])
      else verdict(measured)
      end
    end

    private

    # With nil for a row that was left out of this run.
    def rows_of(result)
      return result.rows if @rows.empty?

      @rows.map { |label| result.rows.find { |row| row.label == label } }
    end

    def measure(row)
      ours = row.value(@subject, @metric)
      return ours if @other.nil? || ours.nil?

      theirs = row.value(@other, @metric)
      return nil if theirs.nil? || (@kind != :offset && theirs.zero?)

      @kind == :offset ? ours - theirs : ours.to_f / theirs
    end

    def verdict(measured)
      worst = @relation == :<= ? measured.max : measured.min
      Verdict.new(sentence:, met: worst.public_send(@relation, @limit), measured: show(worst))
    end

    def flat_verdict(measured)
      spread = measured.max.to_f / measured.min
      least, most = measured.minmax.map { |value| @other ? format("%.2f x", value) : Metric[@metric].brief(value) }
      text = format("%.0f%% (%s to %s)", (spread - 1) * 100, least, most)
      Verdict.new(sentence:, met: spread <= 1 + @limit / 100, measured: text)
    end

    def seconds? = Metric[@metric].unit == "s"

    def show(value)
      case @kind
      when :ratio, :across then format("%.2f x", value)
      when :offset then "#{"+" unless value.negative?}#{seconds? ? Metric[@metric].brief(value) : value.round}"
      else Metric[@metric].brief(value)
      end
    end
  end
end
