# frozen_string_literal: true

require "tempfile"

module Bench
  # System calls per operation, counted by strace. Two sizes are run, and the difference is the operations' share: start, warm-up
  # and exit are the same in both.
  class Syscalls
    def self.available?
      return @available unless @available.nil?

      # strace may be installed and not be allowed to trace.
      @available = system("strace", "-c", "true", out: File::NULL, err: File::NULL) || false
    end

    # Calls per operation as a Float; nil if they cannot be counted.
    def per_operation(table, contender, size)
      return nil unless self.class.available?

      varied, few, many, fixed, operations = table.syscalls.values_at(:varied, :few, :many, :fixed, :operations)
      sizes = [few, many].map { |value| size.merge(varied => value, **fixed) }
      counts = sizes.map { |chosen| count(table, contender, chosen) }
      return nil if counts.include?(nil)

      less, more = sizes.map { |chosen| operations.call(**chosen) }
      [(counts.last - counts.first) / (more - less).to_f, 0.0].max
    end

    private

    def count(table, contender, size)
      Tempfile.create("ringspun-bench-strace") do |summary|
        sampler = Sampler.new(prefix: ["strace", "-f", "-c", "-o", summary.path])
        answer = sampler.sample(table, contender, size)
        answer.key?("real") ? total(summary.read) : nil
      end
    end

    # The last line of the summary: "100.00 0.001234 1 1234 5 total", where the errors' column may be empty.
    def total(summary)
      summary[/^\s*100\.00\s+[\d.]+\s+\d*\s+(\d+)(?:\s+\d+)?\s+total$/, 1]&.to_i
    end
  end
end
