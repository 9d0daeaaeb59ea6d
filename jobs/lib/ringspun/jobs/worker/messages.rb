# frozen_string_literal: true

require "json"

module Ringspun
  module Jobs
    class Worker
      # The messages that others leave in the storage for a worker: names of signals, as Sidekiq's dashboard sends them, and
      # cancellations. Others are ignored. See Process#signal in
      # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/api.rb
      #
      # @api private
      class Messages
        CANCEL = "CANCEL:"

        # @param jid [String]
        # @return [String] the message that cancels a job
        def self.cancellation(jid) = "#{CANCEL}#{JSON.generate("jid" => jid)}"

        # The message by which {Worker.ask_waits} asks.
        WAITS = "WAITS"

        # @param control [Control]
        # @param processor [Processor]
        # @param announcement [Announcement]
        def initialize(node, storage, control, processor, announcement)
          @node = node
          @storage = storage
          @control = control
          @processor = processor
          @announcement = announcement
        end

        # Reads the messages and does what they say. May switch strands.
        #
        # @param connection [Object, nil] of the storage
        def obey(connection) = @storage.signals(@node, connection: connection).each { |message| obey_one(message) }

        private

        def obey_one(message)
          case message
          when "TERM" then @control.stop
          when "TSTP" then @control.quiet
          when WAITS then @announcement.tell_waits
          else cancel(message.delete_prefix(CANCEL)) if message.start_with?(CANCEL) # it may be no valid text
          end
        end

        def cancel(text)
          job = JSON.parse(text)
          jid = job["jid"] if job.is_a?(Hash)
          return unless jid.is_a?(String)

          @processor.mark_cancelled(jid)
          @control.order { @processor.cancel(jid) }
        rescue JSON::ParserError
          nil
        end
      end
      private_constant :Messages
    end
  end
end
