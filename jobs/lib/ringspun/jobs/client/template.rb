# frozen_string_literal: true

require "digest"
require "json"

module Ringspun
  module Jobs
    # The fields that all jobs of a class with the same options share, as JSON text. So a job's entry needs only the rest to be
    # generated.
    #
    # @api private
    class Template
      # @return [Class, String] as the caller has given it
      attr_reader :job_class
      # @return [String]
      attr_reader :queue
      # @return [Hash{Symbol => Object}]
      attr_reader :options
      # @return [Boolean, nil] whether jobs wait for the commit; nil: as the settings say
      attr_reader :after_commit

      # @param job_class [Class, String]
      # @param options [Hash{Symbol => Object}] as {Options.check} keeps them
      # @raise [InvalidJobError] when no worker could find the class by its name
      def initialize(job_class, options)
        @job_class = job_class
        @options = options
        @queue = options[:queue]
        @after_commit = options[:after_commit]
        @unique = !options[:unique_for].nil?
        @priority = options[:priority] unless options[:priority] == 0
        @prefix = "#{JSON.generate(fields)[0..-2]},\"jid\":\"".freeze
      end

      # A job that is due goes to its queue at once, and not to the schedule, where it would wait for a poller.
      #
      # @param seconds [Float, nil]
      # @return [Float, nil]
      def self.delay(seconds) = seconds&.positive? ? seconds : nil

      # A job as a Hash, which middleware may change.
      #
      # @param arguments [Array]
      # @param _at [Float, nil] when it is due, which is no field of the entry
      # @return [Hash{String => Object}]
      def job(arguments, milliseconds, _at = nil)
        time = Float(Ids.now(false))
        fields.merge("args" => arguments, "jid" => Ids.jid, "created_at" => Wire.time(time, milliseconds: milliseconds))
      end

      # @param arguments [Array] that have passed {Arguments.check}
      # @param at [Float, nil] see {Storage::Push}
      # @param delay [Float, nil]
      # @return [Storage::Push]
      def push(arguments, milliseconds, at = nil, delay = nil)
        return push_of(job(arguments, milliseconds, at), milliseconds, at, delay) if @unique

        jid = Ids.jid
        now = Ids.now(milliseconds)
        # A scheduled job gets its enqueued_at when it is moved to its queue.
        entry = if at || delay
                  "#{@prefix}#{jid}\",\"created_at\":#{now},\"args\":#{JSON.generate(arguments)}}"
                else
                  "#{@prefix}#{jid}\",\"enqueued_at\":#{now},\"created_at\":#{now},\"args\":#{JSON.generate(arguments)}}"
                end
        Storage::Push.new(@queue, entry, jid, at, delay, nil, nil, @priority)
      end

      # @param job [Hash{String => Object}]
      # @return [Storage::Push]
      def push_of(job, milliseconds, at, delay)
        job = at || delay ? job.except("enqueued_at") : enqueued(job, milliseconds)
        priority = Wire.priority(job)
        unless job["unique_for"]
          return Storage::Push.new(job["queue"], Wire.dump(job), job["jid"], at, delay, nil, nil, priority)
        end

        token = job["unique_token"] || token_of(job)
        Storage::Push.new(job["queue"], Wire.dump(job.merge("unique_token" => token)), job["jid"], at, delay, token,
                          job["unique_for"], priority)
      end

      # When it is enqueued, which is now, unless middleware has said otherwise.
      #
      # @param job [Hash{String => Object}]
      # @return [Hash{String => Object}]
      def enqueued(job, milliseconds)
        return job if job["enqueued_at"]

        job.merge("enqueued_at" => Wire.time(Float(Ids.now(false)), milliseconds: milliseconds))
      end

      # @param _answer [Object] of the outermost middleware, which has yielded
      # @return [Boolean] whether the job is enqueued
      def passes?(_answer) = true

      # @return [String] the class as people call it: of a job that another class wraps, that of the job
      # @raise [InvalidJobError] if it has no name
      def shown_name = fields.then { |all| all["wrapped"] || all["class"] }

      private

      def name
        return @job_class if @job_class.is_a?(String)

        @job_class.name || raise(InvalidJobError, "#{@job_class.inspect} has no name by which a worker could find it")
      end

      def fields
        { "class" => name, "queue" => @queue, "retry" => @options[:retry], **extras }
      end

      def extras
        extras = { "retry_queue" => @options[:retry_queue], "retry_for" => @options[:retry_for],
                   "backtrace" => @options[:backtrace], "tags" => @options[:tags],
                   "keep_result" => @options[:keep_result], Wire::PRIORITY => @priority, Wire::DEATHS => @options[:deaths] }
        extras.delete_if { |_name, value| !value || value == [] }
        extras["dead"] = false if @options[:dead] == false
        extras["wrapped"] = @options[:wrapped] if @options[:wrapped]
        return extras unless @unique

        extras["unique_for"] = @options[:unique_for]
        extras["unique_until"] = @options.fetch(:unique_until, "success")
        extras["unique_token"] = @options[:unique_token] if @options[:unique_token]
        extras
      end

      # Hashes with the same pairs have the same token, in whichever order.
      def token_of(job)
        Digest::SHA256.hexdigest(JSON.generate([job["class"], job["queue"], sorted(job["args"])]))
      end

      def sorted(value)
        case value
        when Array then value.map { |each| sorted(each) }
        when Hash then value.sort.to_h { |key, each| [key, sorted(each)] }
        else value
        end
      end
    end
    private_constant :Template
  end
end
