# frozen_string_literal: true

require_relative "cron/times"
require_relative "cron/catch_up"
require_relative "cron/classes"
require_relative "cron/entry"
require_relative "cron/definitions"
require_relative "cron/setting"
require_relative "cron/making"
require_relative "cron/overview"

module Ringspun
  module Jobs
    # Jobs that are enqueued by a schedule. Each worker ticks, and the storage decides who pushes a tick.
    #
    # @api private
    module Cron
    end
    private_constant :Cron

    class << self
      # Has jobs of a class enqueued by a schedule, once a tick, by whichever worker comes first. To be called where the program
      # is loaded; only workers tick. A program that calls it again with the same changes nothing.
      #
      #   Ringspun::Jobs.cron("nightly", "every day at 4am", Report, "all", zone: "Europe/Berlin", queue: "low")
      #
      # @param name [String, Symbol] of the entry, which no other one has
      # @param schedule [String] in words, or as crontab has it; with a time zone at its end or without
      # @param job_class [Class, String, BoundJob] a class of ours or of Active Job, or the name of one
      # @param arguments [Array<Object>] of the job
      # @param zone [String, nil] the time zone, if the schedule says none; nil: {Config#cron_zone}
      # @param catch_up [Symbol] what becomes of ticks that were missed: :skip, nothing; :once, the last is made up for; :all,
      #   each, up to 100
      # @param description [String, nil] for people
      # @param options [Hash{Symbol => Object}] of the job, as {Job::ClassMethods#set} takes them
      # @return [nil]
      # @raise [ConfigError] which says what is wrong
      # @since 0.1.0
      def cron(name, schedule, job_class, *arguments, zone: nil, catch_up: :once, description: nil, **options)
        config.add_cron(Cron::Entry.new(name, schedule, job_class, arguments, zone:, catch_up:, description:, **options))
      end
    end
  end
end
