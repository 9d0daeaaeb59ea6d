# frozen_string_literal: true

require "delegate"
require "json"
require "securerandom"

module Ringspun
  module Jobs
    # The form in which jobs stand in the storage, which Sidekiq and Exq share: an *entry* is the JSON text, a *job* the Hash that
    # it stands for, with String keys. Unknown fields are kept. An entry that was fetched is never made anew from its job, for it
    # is acknowledged by its bytes.
    #
    # Of two fields of the same name the last one counts, whichever version of JSON there is.
    module Wire
      # Since when a number must be in milliseconds to be a time at all: seconds would be in the year 5138.
      MILLISECONDS_FROM = 100_000_000_000

      # A number that is too large for a Float. JSON has no word for Infinity, so it is written as it was read.
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

      # The same, for one that is to be written anew.
      #
      # @param entry [String]
      # @return [Hash] which {dump} can write, whatever numbers it has
      # @raise [MalformedEntryError]
      # @api private
      def parse_to_change(entry) = job_of { value(entry) }

      # Any value. What {dump} writes of it has the numbers that it has had.
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

      # What is no job, with what is wrong with it, as it stands among the dead. What is no JSON at all stays as it is. Any other
      # value becomes part of an object, for at others the pages of Sidekiq break.
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

      # A time as all readers take it: seconds with a fraction part. Sidekiq takes a whole number for milliseconds, Exq takes all
      # numbers for seconds.
      #
      # @param seconds [Numeric] since the epoch
      # @param milliseconds [Boolean] in Sidekiq 8's form, which Exq cannot read
      # @return [Float, Integer]
      # @since 0.1.0
      def time(seconds, milliseconds: false) = milliseconds ? (seconds * 1000).round : seconds.to_f

      # Reads a time in any of the forms.
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
