# frozen_string_literal: true

require "json"

module Ringspun
  module Jobs
    class Web
      # An entry as pages show it. Its author may have put anything into any field, and it may be no job at all.
      #
      # @api private
      class JobText
        # So much of the arguments lists show.
        SHORT = 200
        # Longer texts are cut on the job's own page.
        LONG = 100_000
        ERROR_SHORT = 300

        # @return [String]
        attr_reader :entry

        # @param entry [String]
        def initialize(entry)
          @entry = entry
          @job = Wire.parse_to_change(entry)
        rescue MalformedEntryError
          @job = loose(entry)
          @malformed = true
        end

        # @return [Boolean] whether it is no job
        def malformed? = @malformed == true

        # @return [String] the class that runs, which another one may wrap
        def name
          wrapped = @job["wrapped"]
          wrapped.is_a?(String) ? wrapped : text(@job["class"]) || "no job"
        end

        # @return [String, nil]
        def jid = string("jid")

        # @return [String, nil]
        def queue = string("queue")

        # @return [Array<String>]
        def tags = @job["tags"].is_a?(Array) ? @job["tags"].first(20).map { |tag| text(tag)[0, 100] } : []

        # @return [String] the arguments in one line
        def arguments
          return @entry.byteslice(0, SHORT) if malformed? && @job.empty?

          shown = [*given].map { |each| written(each) }.join(", ")
          shown.size > SHORT ? "#{shown[0, SHORT]}…" : shown
        end

        # @return [String] the whole entry, written for people
        def pretty = cut(@job.empty? ? @entry : written(@job.except("error_backtrace"), :pretty_generate))

        # @return [String]
        def pretty_arguments = cut(written(given, :pretty_generate))

        # @return [String, nil]
        def error_class = string("error_class")

        # @return [String, nil]
        def error_message = string("error_message")

        # @return [String, nil] class and message in short
        def error
          return unless error_class || error_message

          [error_class, error_message].compact.join(": ").then { |all| all.size > ERROR_SHORT ? "#{all[0, ERROR_SHORT]}…" : all }
        end

        # @return [Array<String>, nil]
        def backtrace = Backtrace.load(@job["error_backtrace"])

        # @return [Integer, nil] how often it was tried again
        def tries = (@job["retry_count"] if @job["retry_count"].is_a?(Integer))

        # @param field [String]
        # @return [Float, nil] seconds since the epoch
        def time(field) = Wire.seconds(@job[field])

        # @return [Float, nil] since when it has waited in its queue
        def waiting_since = time("enqueued_at") || time("created_at")

        private

        # ActiveJob puts the arguments into a Hash.
        def given
          arguments = @job["args"]
          inner = arguments.first if @job.key?("wrapped") && arguments.is_a?(Array)
          inner.is_a?(Hash) && inner["arguments"].is_a?(Array) ? inner["arguments"] : arguments
        end

        def loose(entry)
          value = Wire.value(entry)
          value.is_a?(Hash) ? value : {}
        rescue JSON::ParserError, EncodingError
          {}
        end

        def string(field) = @job[field].nil? ? nil : text(@job[field])

        def text(value)
          return value if value.nil? || value.is_a?(String)

          written(value)
        end

        # Strings that are no UTF-8 cannot be generated.
        def written(value, how = :generate)
          JSON.public_send(how, value)
        rescue JSON::JSONError, EncodingError
          value.inspect
        end

        def cut(text) = text.size > LONG ? "#{text[0, LONG]}… (#{Words.count(text.bytesize, "byte")} in all)" : text
      end
      private_constant :JobText
    end
  end
end
