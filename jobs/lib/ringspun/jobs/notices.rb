# frozen_string_literal: true

module Ringspun
  module Jobs
    # Events of ActiveSupport::Notifications, where that is loaded and somebody listens; else they cost one look.
    #
    # - `enqueue.ringspun_jobs`, around the call of the storage: `:class`, `:queue`, `:arguments`, `:jid` (nil: it was not
    #   enqueued)
    # - `enqueue_all.ringspun_jobs`, around up to a thousand jobs: `:count`, `:jids`
    # - `perform.ringspun_jobs`, around a run and its middleware: `:job`, `:queue`; what it raises is in `:exception_object`
    # - `retry.ringspun_jobs`, `dead.ringspun_jobs`, `dropped.ringspun_jobs`, when a run has failed: `:job`, `:error`, `:queue`,
    #   and `:delay` in seconds
    #
    # @api private
    module Notices
      @loaded = false

      class << self
        # Looks for ActiveSupport::Notifications, before the first job is enqueued or run.
        def look = @loaded ||= defined?(::ActiveSupport::Notifications) ? true : false

        # @param event [String] without the namespace
        # @return [Boolean] whether somebody listens
        def wanted?(event) = @loaded && ::ActiveSupport::Notifications.notifier.listening?(NAMES.fetch(event))

        # @param event [String] that somebody listens to
        # @yieldparam payload [Hash{Symbol => Object}] which the block may add to
        # @return [Object] the block's value
        def around(event, payload, &) = ::ActiveSupport::Notifications.instrument(NAMES.fetch(event), payload, &)

        # @yieldreturn [Hash{Symbol => Object}] the payload; not called if nobody listens
        def tell(event) = wanted?(event) && ::ActiveSupport::Notifications.instrument(NAMES.fetch(event), yield)
      end

      NAMES = %w[enqueue enqueue_all perform retry dead dropped].to_h { |event| [event, "#{event}.ringspun_jobs"] }.freeze
    end
    private_constant :Notices
  end
end
