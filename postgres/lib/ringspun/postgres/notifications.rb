# frozen_string_literal: true

require "active_support"
require "active_support/notifications"
require "securerandom"
require "ringspun/postgres"

module Ringspun
  module Postgres
    # Events of ActiveSupport::Notifications, for pools that are made after `require "ringspun/postgres/notifications"`:
    # `statement.ringspun_postgres`, when a statement has its answer, with what {Execution} says of it: `:sql`, `:kind`, `:rows`,
    # `:affected`, `:connection`, `:queue`, `:wire`, `:decoding`, and `:exception_object`, nil where it went well. Passwords
    # in `:sql` are left out, and parameters are not in it. Where nobody listens it costs one look a statement.
    #
    # @api private
    module Notifications
      NAME = "statement.ringspun_postgres"
      FIELDS = %i[kind rows affected connection queue wire decoding].freeze
      private_constant :NAME, :FIELDS

      class << self
        # @return [Boolean] whether somebody listens
        def wanted? = ::ActiveSupport::Notifications.notifier.listening?(NAME)

        # @param execution [Execution]
        def call(execution)
          ended = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          payload = { sql: Shown.sql(execution.sql), exception_object: execution.error, **execution.to_h.slice(*FIELDS) }
          ::ActiveSupport::Notifications.publish_event(
            ::ActiveSupport::Notifications::Event.new(NAME, ended - execution.duration, ended, SecureRandom.hex(10), payload)
          )
        end
      end

      Observers.add(self)
    end
    private_constant :Notifications
  end
end
