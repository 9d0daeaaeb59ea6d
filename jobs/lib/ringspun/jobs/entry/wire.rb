# frozen_string_literal: true

require "delegate"
require "json"
require "securerandom"

module Ringspun
  module Jobs
    # The form of jobs in the storage, which Sidekiq and Exq share (https://github.com/sidekiq/sidekiq/wiki/Job-Format): an
    # *entry* is the JSON text, a *job* the Hash that it stands for, with String keys. Unknown fields are kept. An entry that was
    # fetched is never generated again from its job, for it is acknowledged by its bytes.
    #
    # Where two fields have the same name, the last one counts, in every version of the gem json.
    module Wire
      # A time from this number on is in milliseconds: in seconds it would be in the year 5138.
      MILLISECONDS_FROM = 100_000_000_000

      # The field that has a job's priority. Programs that were written for Sidekiq may have a field `priority` of their own, and
      # Sidekiq's workers do not look where jobs with a priority of ours wait.
      PRIORITY = "ringspun_priority"

      # Priorities are from minus this to this, for the levels of a queue are limited. What others have written beyond it counts
      # as this.
      PRIORITY_MAX = 100

      # The field that says how often a job may end its process, see {Job::ClassMethods#job_options}.
      DEATHS = "ringspun_deaths"

      # See {Storage::QUARANTINE}.
      QUARANTINE = "ringspun-quarantine"

      # Names of queues that no program may enqueue into or serve: the quarantine's, and those by which lists of jobs in flight
      # are called.
      RESERVED = /\A(?:backup::|#{QUARANTINE}\z)/

      # A number that is too large for a Float. JSON has no Infinity, so the number is written as it was read.
      class Huge < DelegateClass(Float)
        # @param text [String] of a number with a fraction part or an exponent
        # @return [Float, Huge]
        def self.try_convert(text)
          number = text.to_f
          number.finite? ? number : new(number, text)
        end

        def initialize(number, text)
          super(number)
          @text = text
        end

        def to_json(*) = @text
      end
      private_constant :Huge

      module_function

      # @param entry [String]
      # @return [Hash]
      # @raise [MalformedEntryError]
      # @since 0.1.0
      def parse(entry) = job_of { JSON.parse(entry, allow_duplicate_key: true) }

      # @param entry [String]
      # @return [Hash, nil] nil: it is no job
      # @api private
      def read(entry)
        parse(entry)
      rescue MalformedEntryError
        nil
      end

      # @param entry [String]
      # @return [String, nil] nil: it is no job
      # @api private
      def jid(entry) = read(entry)&.fetch("jid")

      # @param entry [String]
      # @return [String] the queue to which it belongs, if it is a job
      # @api private
      def queue_of(entry) = read(entry)&.fetch("queue", nil) || "default"

      # @param name [Object]
      # @return [Boolean] whether a program may have a queue of that name
      # @since 0.1.0
      def queue?(name) = name.is_a?(String) && !name.empty? && utf8(name)&.match?(RESERVED) == false

      # @param queue [Object] of an entry, whose bytes may be any
      # @return [Boolean]
      # @api private
      def reserved?(queue) = RESERVED.match?(queue.to_s.b)

      # @param text [Object]
      # @return [String, nil] a new one of a String or Symbol, as JSON has it; nil: it is no text
      # @api private
      def utf8(text)
        text = text.name if text.is_a?(Symbol)
        utf8 = text.encode(Encoding::UTF_8) if text.is_a?(String)
        utf8 if utf8&.valid_encoding?
      rescue EncodingError
        nil
      end

      # @param job [Hash]
      # @return [Integer] its priority: the smaller ones run first
      # @since 0.1.0
      def priority(job)
        value = job[PRIORITY]
        value.is_a?(Integer) ? value.clamp(-PRIORITY_MAX, PRIORITY_MAX) : 0
      end

      # The same, for an entry that is to be written anew.
      #
      # @param entry [String]
      # @return [Hash] which {dump} can write, even if it has numbers that are too large
      # @raise [MalformedEntryError]
      # @api private
      def parse_to_change(entry) = job_of { value(entry) }

      # Names the queue of an entry that names none. A null goes, for readers take the last of two members.
      #
      # @param entry [String]
      # @param queue [String]
      # @return [String]
      # @raise [MalformedEntryError]
      # @api private
      def with_queue(entry, queue)
        job = parse_to_change(entry)
        return entry.sub("{") { %({"queue":#{JSON.generate(queue)},) } unless job.key?("queue")

        dump({ "queue" => queue }.merge(job.except("queue")))
      end

      # Says of an entry that names no such time when it was enqueued.
      #
      # @param entry [String]
      # @param job [Hash] that it stands for
      # @param time [Float, Integer] in the form of {time}
      # @return [String]
      # @api private
      def enqueued(entry, job, time)
        job.key?("enqueued_at") ? entry : entry.sub("{") { %({"enqueued_at":#{JSON.generate(time)},) }
      end

      # Parses any JSON value. {dump} writes its numbers as they were.
      #
      # @param text [String]
      # @return [Object]
      # @raise [JSON::ParserError]
      # @api private
      def value(text) = JSON.parse(text, allow_duplicate_key: true, decimal_class: Huge)

      # @param job [Hash]
      # @return [String]
      # @since 0.1.0
      def dump(job) = JSON.generate(job)

      # @param entry [String] for which there is no queue
      # @return [MalformedEntryError] why: it is no job, or names a queue that is reserved
      # @api private
      def fault(entry)
        MalformedEntryError.new("the queue #{JSON.generate(parse(entry)["queue"].scrub)} is reserved")
      rescue MalformedEntryError => error
        error
      end

      # A malformed entry with what is wrong with it, for the dead. What is no JSON stays as it is. A JSON value that is no object
      # becomes the arguments of one, for Sidekiq's pages show only objects, see JobRecord in
      # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/api.rb
      #
      # @param entry [String]
      # @param error [Exception]
      # @param time [Float, Integer] in the form of {time}
      # @return [String]
      # @api private
      def blamed(entry, error, time)
        job = value(entry)
        job = { "args" => [job] } unless job.is_a?(Hash)
        dump(job.merge("error_class" => error.class.name, "error_message" => error.message, "failed_at" => time))
      rescue JSON::JSONError, EncodingError
        entry
      end

      # A time that all readers understand: seconds with a fraction part. Sidekiq takes an integer for milliseconds (api.rb,
      # time_from_timestamp), Exq takes all numbers for seconds:
      # https://github.com/akira/exq/blob/master/lib/exq/support/time.ex
      #
      # @param seconds [Numeric] since the epoch
      # @param milliseconds [Boolean] in the form of Sidekiq 8, which Exq cannot read
      # @return [Float, Integer]
      # @since 0.1.0
      def time(seconds, milliseconds: false) = milliseconds ? (seconds * 1000).round : seconds.to_f

      # Reads a time of either form.
      #
      # @param value [Numeric, nil]
      # @return [Float, nil] seconds since the epoch
      # @since 0.1.0
      def seconds(value)
        return unless value.is_a?(Numeric)

        value >= MILLISECONDS_FROM ? value / 1000.0 : value.to_f
      end

      # @return [String] 24 hexadecimal digits
      # @since 0.1.0
      def new_jid = SecureRandom.hex(12)

      def job_of
        job = yield
        raise MalformedEntryError, "the entry is no JSON object" unless job.is_a?(Hash)

        check(job)
        job
      rescue JSON::ParserError, EncodingError => error
        raise MalformedEntryError, "the entry is no JSON: #{error.message.scrub[0, 200]}"
      end

      def check(job)
        queue = job["queue"]
        return if job["class"].is_a?(String) && job["args"].is_a?(Array) && job["jid"].is_a?(String) &&
                  (queue.nil? || queue.is_a?(String))

        field = { "class" => String, "args" => Array, "jid" => String }.find { |name, type|
          !job[name].is_a?(type)
        }&.first || "queue"
        raise MalformedEntryError, "the entry's #{field} is #{job.key?(field) ? job[field].inspect[0, 100] : "missing"}"
      end
      private_class_method :job_of, :check
    end
  end
end
