# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The pushes of one call, in as few commands as possible: one LPUSH for all jobs of a queue. A job that needs the server's
        # clock or a lock, or has a priority, is pushed by a script. If one with a lock is due at once, the script pushes all jobs
        # of its queue, to keep their order.
        #
        # @api private
        class Batch
          # By the caller's clock, which may be wrong by the better part of it; the script asks the server's.
          SOON_SECONDS = 60
          private_constant :SOON_SECONDS

          # @param push [Push]
          # @return [Array] as scripts take it, see shared/push.lua
          def self.arguments(push)
            time = if push.at then "@#{push.at.to_f}"
                   elsif push.delay then "+#{push.delay.to_f}"
                   else ""
                   end
            milliseconds = push.lock ? [(push.lock_seconds * 1000).ceil, 1].max : ""
            [push.queue, push.entry, push.jid || "", time, push.lock || "", milliseconds]
          end

          # @param prefix [String]
          # @param pushes [Array<Push>]
          def initialize(prefix, pushes)
            @prefix = prefix
            @pushes = pushes
            @plain = {}
            special = false
            pushes.each do |push|
              if push.lock || push.delay || push.at || (push.priority && prior?(push))
                special = true
              else
                (@plain[push.queue] ||= ["LPUSH", "#{prefix}queue:#{push.queue}"]) << push.entry
              end
            end
            separate if special
          end

          # @return [Array<Array>]
          def commands
            all = @plain.values
            all.unshift(["SADD", "#{@prefix}queues", *@plain.keys]) if all.any?
            all << @schedule if @schedule
            all << @script if @script
            all
          end

          # @param replies [Array] one for each command
          # @return [Array, nil] as {Storage#push} returns
          def outcomes(replies)
            scripted = replies.last if @script && replies.last.is_a?(Array)
            return if replies.none?(Error) && (scripted.nil? || scripted.all?(""))

            parts = @plain.any? ? [nil, *@plain.keys] : []
            parts << :schedule if @schedule
            parts << :script if @script
            by_part = parts.zip(replies).to_h
            @pushes.map do |push|
              reply = by_part.fetch(part(push))
              reply = outcome(reply.shift) if reply.is_a?(Array)
              reply if reply.is_a?(Error) || reply.is_a?(String)
            end
          end

          private

          def prior?(push) = push.priority && push.priority != 0

          def part(push)
            if push.lock || push.delay then :script
            elsif push.at then :schedule
            elsif prior?(push) then :script
            elsif @plain.key?(push.queue) then push.queue
            else :script
            end
          end

          def separate
            @pushes.each { |push| @plain.delete(push.queue) if push.lock && !push.at && !push.delay }
            scheduled, rest = @pushes.reject { |push| part(push).is_a?(String) }.partition { |push| part(push) == :schedule }
            times = scheduled.flat_map { |push| [push.at.to_f, push.entry] }
            @schedule = later(scheduled.map { |push| push.at.to_f }.min, times) if scheduled.any?
            return if rest.empty?

            @script = Script[:push].command(@prefix, AGAIN_SECONDS * 1000, *rest.flat_map { |push| Batch.arguments(push) })
          end

          # Only what is due soon wakes somebody, which takes a script.
          def later(first, times)
            return Script[:later].command(@prefix, *times) if first - Time.now.to_f < SOON_SECONDS

            ["ZADD", "#{@prefix}schedule", *times]
          end

          def outcome(answer)
            case answer[0]
            when "=" then answer[1..]
            when "!" then StorageError.new("Redis has refused: #{answer[1..]}")
            end
          end
        end
        private_constant :Batch
      end
    end
  end
end
