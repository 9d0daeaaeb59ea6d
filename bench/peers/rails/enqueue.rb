# frozen_string_literal: true

# So many callers enqueue for so long. Prints a reading of Bench::Meter, and a proof.
#
#   ruby enqueue.rb CALLERS SECONDS WARM_UP_SECONDS BULK

require_relative "config/environment"
require "bench/callers"
require "bench/meter"

ARGUMENTS = [1_021, "u" * 60, { "urgent" => true }].freeze

number, seconds, warm_up, bulk = ARGV.map { |argument| Float(argument) }
one = -> { EmptyJob.perform_later(*ARGUMENTS) }
many = -> { ActiveJob.perform_all_later(Array.new(bulk.to_i) { EmptyJob.new(*ARGUMENTS) }) }
call = bulk == 1 ? one : many
meter = Bench::Meter.new

Library.prepare
Library.in_callers do |start, finish|
  callers = Bench::Callers.new(start, finish)
  callers.run(number.to_i, warm_up, call)
  before = Library.waiting
  jobs = meter.measure { callers.run(number.to_i, seconds, call) } * bulk.to_i
  puts JSON.generate(meter.reading.merge(operations: jobs, lost: jobs - (Library.waiting - before)))
end
