# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # A page that says what does not go. It asks the storage for nothing.
      #
      # @api private
      class Trouble < Page
        attr_reader :status, :title

        # @param status [Integer] of HTTP
        # @param text [String]
        def initialize(view, status, title, text)
          super(view)
          @status = status
          @title = title
          @text = text
        end

        private

        def menu_counts = {}

        def notice = nil

        def content = m.p(@text)
      end
      private_constant :Trouble
    end
  end
end
