# frozen_string_literal: true

module Ringspun
  module HTTP
    class Command
      # Values that a shell has given as texts. What is no such value stays a text, so that the check of its option refuses it,
      # with the words that the configuration file gets as well.
      #
      # @api private
      module Texts
        # What says that there is no limit, or no such thing.
        NONE = "none"
        YES = %w[true yes on].freeze
        NO = %w[false no off none].freeze
        # Puma's way to say one for each processor.
        EACH = %w[auto cores].freeze
        private_constant :NONE, :YES, :NO, :EACH

        module_function

        def itself(text) = text

        def path(text) = text == NONE ? nil : text

        def number(text)
          case text
          when NONE then nil
          when /\A-?\d+\z/ then Integer(text, 10)
          when /\A-?\d+\.\d+\z/ then Float(text)
          else text
          end
        end

        def workers(text) = EACH.include?(text) ? :cores : number(text)

        # Permissions of a file are octal.
        def mode(text) = text.match?(/\A[0-7]+\z/) ? Integer(text, 8) : text

        # @raise [UsageError]
        def truth(text, name)
          return true if text == true || YES.include?(text)
          return false if NO.include?(text)

          raise UsageError, "#{name}: is true or false, got #{text.inspect}"
        end

        def list(text) = text.split(",")

        def pauses(text)
          least, most = text.split("..", 2).map { |part| number(part) }
          [least, most].all?(Numeric) ? least..most : text
        end

        # NAME=VALUE,NAME=VALUE.
        #
        # @raise [UsageError]
        def pairs(text, name)
          text.split(",").to_h do |pair|
            key, value = pair.split("=", 2)
            raise UsageError, "#{name}: takes NAME=VALUE,NAME=VALUE, got #{text.inspect}" if value.nil?

            [key.strip.to_sym, value]
          end
        end

        def numbers(text, name) = pairs(text, name).transform_values { |value| number(value) }

        # A file that lines are added to, or what stands for a stream of this process.
        #
        # @raise [UsageError]
        def stream(text, name)
          case text
          when NONE then name == :logger ? nil : ::File.open(::File::NULL, "w")
          when "-", "stdout" then $stdout
          when "stderr" then $stderr
          else ::File.open(text, "a").tap { |file| file.sync = true }
          end
        rescue SystemCallError, ArgumentError => error # a path with a zero byte
          raise UsageError, "#{name}: #{text} cannot be opened: #{error.message}"
        end
      end
      private_constant :Texts
    end
  end
end
