# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # How the jobs of each class go: in all, and in each of the last minutes.
          #
          # @api private
          module Measures
            # @return [nil]
            def measure(measures)
              measures.each { |measure| add_to_minute(measure, add_to_totals(measure)) }
              run("DELETE FROM minutes WHERE minute <= ?", this_minute - MINUTES_MAX)
              nil
            end

            # @return [Array<Measure>]
            def measured
              rows("SELECT class, processed, failed, milliseconds, histogram FROM measured ORDER BY class")
                .map { |row| measure_of(nil, *row) }
            end

            # @return [Array<Measure>]
            def measured_minutes(name, count)
              last = this_minute - [count, MINUTES_MAX].min
              rows("SELECT minute, class, processed, failed, milliseconds, histogram FROM minutes " \
                   "WHERE class = ? AND minute > ? ORDER BY minute", text(name), last).map { |row| measure_of(*row) }
            end

            private

            def this_minute = (now / 60).to_i

            def measure_of(minute, *numbers, histogram)
              Measure.new(minute, *numbers, JSON.parse(histogram).transform_keys(&:to_i))
            end

            # @return [String] the name under which it counts
            def add_to_totals(measure)
              name = text(measure.class_name)
              old = totals_of(name)
              if old.nil? && value("SELECT count(*) FROM measured") >= CLASSES_MAX
                name = OTHERS
                old = totals_of(name)
              end
              run("INSERT OR REPLACE INTO measured (class, processed, failed, milliseconds, histogram) VALUES (?, ?, ?, ?, ?)",
                  name, *sums(measure, old))
              name
            end

            def add_to_minute(measure, name)
              old = row("SELECT processed, failed, milliseconds, histogram FROM minutes WHERE class = ? AND minute = ?", name,
                        measure.minute)
              run("INSERT OR REPLACE INTO minutes (class, minute, processed, failed, milliseconds, histogram) " \
                  "VALUES (?, ?, ?, ?, ?, ?)", name, measure.minute, *sums(measure, old))
            end

            def sums(measure, old)
              *numbers, histogram = old || [0, 0, 0, "{}"]
              sums = %i[processed failed milliseconds].zip(numbers).map { |field, number| measure[field] + number }
              counts = JSON.parse(histogram).merge(measure.histogram.transform_keys(&:to_s)) { |_, one, other| one + other }
              [*sums, JSON.generate(counts)]
            end

            def totals_of(name) = row("SELECT processed, failed, milliseconds, histogram FROM measured WHERE class = ?", name)
          end
          private_constant :Measures
        end
      end
    end
  end
end
