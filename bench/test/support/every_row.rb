# frozen_string_literal: true

# Every row of the tables of concurrent procs for one contender, on the sizes of the warm-up and in this one process. Prints what
# was wrong, and which library there was.
#
#   ruby every_row.rb CONTENDER

$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))

require "json"
require "bench/table"
require "bench/target"
require "bench/meter"

tables = %w[call_methods calls_awaiting wait_methods call_methods_waiting waiting_evaluations].map do |name|
  require File.join(Bench::ROOT, "bench/tables/#{name}.rb")
  Bench.tables.last
end
contenders = tables.map { |table| table.contender(ARGV.fetch(0)) }

contenders.filter_map(&:requires).uniq.each { |library| require library }
backend = contenders.first.backend
begin
  Ringspun::Machine.new(**Bench::BACKENDS.fetch(backend)) if backend
rescue Ringspun::Error => error
  puts JSON.generate(unavailable: error.message)
  exit
end

rows = 0
complaints = tables.zip(contenders).flat_map do |table, contender|
  table.rows.filter_map do |row|
    rows += 1
    size = table.warm_up_size(table.size_of(row, contender))
    proof = contender.body.call(Bench::Meter.new, **size)
    complaint = table.complaint(size, proof.transform_keys(&:to_s))
    "#{table.name} #{row.label}: #{complaint}" if complaint
  end
end
library = defined?(Concurrently) && (defined?(Ringspun::ConcurrentProc) ? "ours" : "the gem")
puts JSON.generate(rows:, complaints:, library:)
