# frozen_string_literal: true

module Bench
  # The numbers a report can show: header, format, and how each is read from a sample. Ratios compare costs, so
  # every metric that serves as one is better when it is lower; `rate` and `kept` are only shown.
  Metric = Data.define(:name, :header, :unit, :format, :reader) do
    def read(sample) = reader.call(sample)
    def show(value) = value.nil? ? "n/a" : Kernel.format(format, value)

    # For a table cell and a chart bar, where there is no header to carry the unit.
    def brief(value)
      return "n/a" if value.nil?
      return Metric.duration(value) if unit == "s"
      return Metric.duration(value / 1e9) if unit == "ns"

      "#{value.abs < 1 ? show(value) : Metric.thousands(value.round)} #{unit}".strip
    end

    # Three digits, and the unit that suits them.
    def self.duration(seconds)
      scale, unit = [[1.0, "s"], [1e3, "ms"], [1e6, "µs"]].find { |factor, _| seconds * factor >= 1 } || [1e9, "ns"]
      scaled = seconds * scale
      Kernel.format("%.#{[2 - Math.log10([scaled, 1].max).floor, 0].max}f #{unit}", scaled)
    end

    def self.thousands(value) = value.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
  end

  class Metric
    each = lambda do |sample, number|
      operations = sample["operations"]
      number.to_f / operations if number && operations&.positive?
    end
    per_operation = ->(sample, seconds) { each.(sample, seconds * 1e9) }
    total = ->(sample) { sample["user"] + sample["system"] }
    rate = ->(sample, seconds) { sample["operations"] / seconds if sample["operations"] && seconds }
    # Of an operation; where the table counts none, of the region.
    counted = lambda do |name|
      lambda do |sample|
        count = sample.dig("counters", name)
        each.(sample, count) || count
      end
    end
    note = ->(name) { ->(sample) { sample["notes"]&.fetch(name, nil) } }

    ALL = [
      [:user, "user", "s", "%.6f", ->(sample) { sample["user"] }],
      [:system, "system", "s", "%.6f", ->(sample) { sample["system"] }],
      [:total, "total", "s", "%.6f", total],
      [:real, "real", "s", "(%10.6f)", ->(sample) { sample["real"] }],
      [:backend, "backend", "s", "%.6f", note.("backend")],
      [:real_ns, "real ns/op", "ns", "%.1f", ->(sample) { per_operation.(sample, sample["real"]) }],
      [:cpu_ns, "cpu ns/op", "ns", "%.1f", ->(sample) { per_operation.(sample, total.(sample)) }],
      [:backend_ns, "backend ns/op", "ns", "%.1f", ->(sample) { each.(sample, note.("backend").(sample)&.*(1e9)) }],
      [:rate, "op/s", "op/s", "%.0f", ->(sample) { rate.(sample, sample["real"]) }],
      [:gc_rate, "GC on op/s", "op/s", "%.0f", ->(sample) { rate.(sample, note.("gc_real").(sample)) }],
      [:objects, "objects/op", "objects", "%.2f", ->(sample) { each.(sample, note.("allocated").(sample)) }],
      [:syscalls, "syscalls/op", "calls", "%.4f", ->(sample) { sample["syscalls"] }],
      [:instructions, "instructions", "instructions", "%.1f", counted.("instructions")],
      [:cache_misses, "cache misses", "misses", "%.3f", counted.("cache_misses")],
      [:context_switches, "ctx switches", "switches", "%.3f", counted.("context_switches")],
      [:maps_growth, "mappings +", "mappings", "%d", note.("maps_growth")],
      [:parked, "parked", "strands", "%d", note.("parked")],
      [:rss_per_strand, "RSS B/strand", "B", "%.0f", note.("rss_per_strand")],
      [:text, "text B", "B", "%d", note.("text")],
      [:idle, "idle", "connections", "%d", note.("idle")],
      [:rss_per_idle, "RSS B/idle", "B", "%.0f", note.("rss_per_idle")],
      [:memory, "memory B", "B", "%d", note.("memory")],
      [:held, "held B", "B", "%d", note.("held")],
      [:held_ratio, "held/data", "x", "%.2f", note.("held_ratio")],
      [:kept, "kept", "x", "%.3f", note.("kept")],
      [:copied, "copied", "B", "%d", note.("copied")],
      [:beyond, "beyond s", "s", "%.6f", note.("beyond")],
      [:gap_worst, "worst gap s", "s", "%.6f", note.("gap_worst")],
      [:gap_median, "median gap s", "s", "%.6f", note.("gap_median")],
      [:p50, "p50 s", "s", "%.6f", note.("p50")],
      [:p99, "p99 s", "s", "%.6f", note.("p99")],
      [:idle_cpu, "CPU s/idle s", "s", "%.6f", note.("idle_cpu")],
      [:page, "page s", "s", "%.6f", note.("page")],
      [:limit_told, "limit told", "", "%d", note.("limit_told")]
    ].to_h { |name, header, unit, format, reader| [name, new(name:, header:, unit:, format:, reader:)] }.freeze

    singleton_class.undef_method(:[]) # Data's, which is `new`
    def self.[](name) = ALL.fetch(name)
    def self.names = ALL.keys
  end
end
