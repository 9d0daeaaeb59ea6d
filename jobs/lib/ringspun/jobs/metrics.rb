# frozen_string_literal: true

require "ringspun/jobs"

module Ringspun
  module Jobs
    # What monitoring reads, in Prometheus' text format: how many jobs wait, run, were done and have failed, for how long the
    # next one of each queue has waited, and how long the jobs of each class have taken.
    #
    #   require "ringspun/jobs/metrics"
    #   map("/metrics") { run Ringspun::Jobs::Metrics.new } # in config.ru; in Rails' routes: mount ... => "/metrics"
    #
    # It is a Rack app. Whoever can reach it sees the names of queues and classes, but no arguments. The numbers are those of all
    # processes together, so one place where it is mounted is enough.
    #
    # See https://prometheus.io/docs/instrumenting/exposition_formats/
    class Metrics
      CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
      # So long an answer is given again, however many ask.
      FRESH_SECONDS = 1
      private_constant :FRESH_SECONDS

      # @param storage [Storage]
      # @param latencies [Integer, nil] of how many queues, those with most jobs, it is read how long jobs wait; nil: of all
      # @return [Sample]
      # @api private
      def self.sample(storage, latencies: nil) = Sample.take(storage, latencies: latencies)

      # May switch strands.
      #
      # @param storage [Storage]
      # @return [String] in Prometheus' text format
      # @raise [UnavailableError]
      # @since 0.1.0
      def self.text(storage = Jobs.storage) = Exposition.new(sample(storage), storage.measured).to_s

      # @param storage [Storage, nil] nil: that of {Jobs.storage}
      # @since 0.1.0
      def initialize(storage: nil)
        @storage = storage
        @lock = Thread::Mutex.new
        @due = 0
      end

      # For Rack. May switch strands.
      #
      # @param env [Hash{String => Object}]
      # @return [Array(Integer, Hash{String => String}, Array<String>)] 503 when the storage is away
      # @since 0.1.0
      def call(env)
        unless %w[GET HEAD].include?(env["REQUEST_METHOD"])
          return [405, { "content-type" => "text/plain", "allow" => "GET, HEAD" }, ["GET it\n"]]
        end

        text = fresh
        [200, { "content-type" => CONTENT_TYPE }, env["REQUEST_METHOD"] == "HEAD" ? [] : [text]]
      rescue Error => error
        [503, { "content-type" => "text/plain; charset=utf-8" }, ["#{error.message}\n"]]
      end

      private

      def fresh
        @lock.synchronize do
          now = self.now
          next @text if @text && now < @due

          @text = Metrics.text(@storage || Jobs.storage)
          @due = now + FRESH_SECONDS
          @text
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end

require_relative "metrics/sample"
require_relative "metrics/exposition"
