# frozen_string_literal: true

# Enqueues so many jobs that call a server.
#
#   ruby fill.rb JOBS PORT

require_relative "config/environment"

jobs, port = ARGV.map { |argument| Integer(argument) }
Library.prepare
ActiveJob.perform_all_later(Array.new(jobs) { CallJob.new(port) })
abort "#{Library.waiting} of #{jobs} jobs wait" unless Library.waiting == jobs
