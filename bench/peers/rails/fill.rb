# frozen_string_literal: true

# Enqueues a number of jobs of a class.
#
#   ruby fill.rb JOBS CLASS ARGUMENTS_AS_JSON

require_relative "config/environment"

jobs = Integer(ARGV.fetch(0))
job_class = Object.const_get(ARGV.fetch(1))
arguments = JSON.parse(ARGV.fetch(2))
Library.prepare
ActiveJob.perform_all_later(Array.new(jobs) { job_class.new(*arguments) })
abort "#{Library.waiting} of #{jobs} jobs wait" unless Library.waiting == jobs
