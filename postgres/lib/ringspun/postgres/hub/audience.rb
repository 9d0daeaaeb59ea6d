# frozen_string_literal: true

module Ringspun
  module Postgres
    class Hub
      # Who listens to what. From any thread. Subscriptions that nobody has any more are collected, and are not there then.
      #
      # @api private
      class Audience
        GAP = Notification.new(kind: :gap, channel: nil, payload: nil, process: nil)
        private_constant :GAP

        def initialize
          @lock = ShortLock.new
          @by_name = {} # WeakMaps, whose keys are subscriptions
          @pending = {}.compare_by_identity # subscriptions for which the server does not listen yet => gates
        end

        # @param gate [Channel] gets :live, or what has failed
        def add(subscription, gate)
          @lock.synchronize do
            @pending[subscription] = gate
            subscription.channels.each { |name| (@by_name[name] ||= ObjectSpace::WeakMap.new)[subscription] = true }
          end
        end

        # @return [Boolean] whether it was there
        def remove(subscription) = @lock.synchronize { take_out(subscription) }

        def empty? = names.empty?

        # @return [Array<String>]
        def names
          @lock.synchronize do
            @by_name.delete_if { |_, listening| listening.size.zero? }
            @by_name.keys
          end
        end

        # @param heard [Array<Array(String, String, Integer)>]
        # @return [Boolean] whether each had somebody to listen
        def spread(heard)
          heard.map do |channel, payload, process|
            listening = @lock.synchronize { @by_name[channel]&.keys || [] }
            notification = Notification.new(:notification, channel, payload, process) unless listening.empty?
            listening.each { |each| offer(each, notification) }
            listening.any?
          end.all?
        end

        # To all who have listened before.
        def announce_gap
          @lock.synchronize { everybody }.each { |each| offer(each, GAP) }
        end

        # @param names [Array<String>] to which the server listens now
        def admit(names)
          return if @pending.empty?

          known = names.to_h { |name| [name, true] }
          @lock.synchronize do
            ready = @pending.keys.select { |each| each.channels.all? { |name| known.key?(name) } }
            ready.each { |each| @pending.delete(each).try_push(:live) }
          end
        end

        # Those for whom the server does not listen yet.
        def fail_pending(error)
          @lock.synchronize do
            @pending.keys.each { |each| @pending[each].try_push(error).then { take_out(each) } }
          end
        end

        # All of them.
        def finish(error)
          all = @lock.synchronize do
            everybody.each do |each|
              @pending[each]&.try_push(error)
              take_out(each)
            end
          end
          all.each { |each| each.finish(error) }
        end

        private

        def everybody = @by_name.values.flat_map(&:keys).uniq(&:__id__)

        def take_out(subscription)
          @pending.delete(subscription)
          subscription.channels.count { |name| @by_name[name]&.delete(subscription) }.positive?
        end

        # What comes before a subscription has begun is not for it.
        def listening?(subscription) = @pending.empty? || @lock.synchronize { !@pending.key?(subscription) }

        def offer(subscription, event)
          remove(subscription) unless !listening?(subscription) || subscription.offer(event)
        end
      end
      private_constant :Audience
    end
  end
end
