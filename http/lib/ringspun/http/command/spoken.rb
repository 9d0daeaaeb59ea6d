# frozen_string_literal: true

module Ringspun
  module HTTP
    class Command
      # What was said in texts, word by word: by flags, or by `rackup -O`.
      #
      # @api private
      class Spoken
        PORT_MAX = 65_535 # of 16 bits
        private_constant :PORT_MAX

        class << self
          # The later ones win; limits come together.
          #
          # @return [Hash{Symbol => Object}]
          def merged(*options)
            options.reduce { |all, some| all.merge(some) { |name, one, other| name == :limits ? both(one, other) : other } }
          end

          # @return [Integer]
          # @raise [UsageError]
          def port(text, name)
            port = Integer(text, 10) if text.match?(/\A\d{1,5}\z/)
            return port if port && port <= PORT_MAX

            raise UsageError, "#{name} must be a number up to #{PORT_MAX}, got #{text.inspect}"
          end

          private

          def both(one, other) = one.is_a?(Hash) && other.is_a?(Hash) ? one.merge(other) : other
        end

        # @return [Array<Object>] see {Places}
        attr_reader :places

        # @return [Hash{Symbol => Object}] what is no option of {HTTP.run}, by its word
        attr_reader :others

        # @return [Array<Symbol>] the words
        attr_reader :words

        def initialize
          @places = []
          @others = {}
          @options = {}
          @log = {}
          @words = []
        end

        # @param word [Words::Word]
        # @param text [String, true, Object] what is no text is taken as it is
        # @raise [UsageError]
        def take(word, text)
          @words |= [word.name]
          value = text.is_a?(String) || text == true ? word.value(text) : text
          case word.name
          when :listen then @places << value
          when :port then @places << ["0.0.0.0", Spoken.port(value.to_s, "port")]
          when :access_log, :access_log_to then @log[word.name] = value
          when :limits then @options = Spoken.merged(@options, { limits: value })
          else (word.of_run? ? @options : @others)[word.name] = value
          end
        end

        # Opens the access log, where one is asked for.
        #
        # @return [Hash{Symbol => Object}] for {HTTP.run}
        # @raise [UsageError]
        def options
          return @options if @log.empty?

          format = @log.fetch(:access_log, :combined)
          { **@options, access_log: format.respond_to?(:to_sym) ? AccessLog.new(format.to_sym, to: target) : format }
        end

        private

        def target
          path = @log[:access_log_to]
          path.nil? || path == "-" ? $stdout : path
        end
      end
      private_constant :Spoken
    end
  end
end
