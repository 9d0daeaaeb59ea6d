# frozen_string_literal: true

require "opentelemetry"

module Ringspun
  # Has strands, and all fibers and threads, begin with the context of OpenTelemetry that is current where they are made: so what
  # they do belongs to the span that was open there. `require "ringspun/opentelemetry"` does it; OpenTelemetry itself begins each
  # fiber without a context.
  #
  # @api private
  module OpenTelemetry
    # The contexts that are attached, the last one first: each with those before it. Storage of fibers is inherited as a copy,
    # and no pair ever changes, so what one strand attaches no other sees.
    KEY = :ringspun_opentelemetry
    private_constant :KEY

    def current = Fiber[KEY]&.first || super

    def attach(context)
      Fiber[KEY] = [context, Fiber[KEY]].freeze
      super
    end

    def detach(token)
      Fiber[KEY] = Fiber[KEY]&.last
      super
    end

    def clear
      Fiber[KEY] = nil
      super
    end

    ::OpenTelemetry::Context.singleton_class.prepend(self)
  end
  private_constant :OpenTelemetry
end
