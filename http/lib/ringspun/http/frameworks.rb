# frozen_string_literal: true

module Ringspun
  module HTTP
    # What has to stand around a program that rests on Rails, Active Record or Active Support, for its requests share a thread.
    #
    # @api private
    module Frameworks
      LOCALES = "I18n keeps the locale by thread, and here requests share one, so that they get each other's: update the gem " \
                "i18n to 1.15 or later"
      private_constant :LOCALES

      class << self
        # @param app [#call]
        # @param telling [Telling] of what does not fit
        # @return [#call] the program itself, where nothing has to stand around it
        # @raise [UsageError] its state would be that of all requests
        def around(app, telling)
          Isolation.settle
          telling.puts(LOCALES) if shared_locales?
          app = Reloading.new(app, ::Rails.application) if Reloading.needed?
          Turns.around(app, telling)
        end

        private

        # As some versions do.
        def shared_locales?
          defined?(::I18n.config) && Fiber.new(storage: {}) { ::I18n.config }.resume.equal?(::I18n.config)
        end
      end
    end
    private_constant :Frameworks
  end
end

require_relative "frameworks/isolation"
require_relative "frameworks/reloading"
require_relative "frameworks/turns"
