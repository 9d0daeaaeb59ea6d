# frozen_string_literal: true

module Ringspun
  module Jobs
    module Sidekiq
      # What a middleware may include to reach the configuration.
      module ServerMiddleware
        # @return [Config]
        # @since 0.1.0
        attr_accessor :config

        # @since 0.1.0
        def redis_pool = config.redis_pool

        # @since 0.1.0
        def logger = config.logger

        # @since 0.1.0
        def redis(&) = config.redis(&)
      end

      ClientMiddleware = ServerMiddleware

      # The middleware of Sidekiq's kind.
      module Middleware
        class << self
          # @return [#call] which returns what an instance with a `config=` gets
          # @api private
          attr_accessor :configuration
        end

        # A class of middleware in a {Jobs::Chain}. It makes an instance for each call. One for clients is called with the pool as
        # well; Sidekiq takes what it returns for the answer, see {Fields#passes?}.
        #
        # @api private
        class Entry
          # @return [Class]
          attr_reader :klass

          # @raise [ConfigError] if it is no class, or its instances cannot be called
          def initialize(klass, arguments, extra)
            unless klass.is_a?(Class) && klass.method_defined?(:call)
              raise ConfigError, "a middleware must be a class with a method call, got #{klass.inspect}"
            end

            @klass = klass
            @arguments = arguments
            @extra = extra
          end

          def call(*arguments, &) = make_new.call(*arguments, *@extra&.call, &)

          def make_new
            instance = @klass.new(*@arguments)
            instance.config = Middleware.configuration.call if instance.respond_to?(:config=)
            instance
          end

          # A chain has each class once, and is asked for it by the class.
          def ==(other) = @klass == (other.is_a?(Entry) ? other.klass : other)
        end

        # A {Jobs::Chain} by Sidekiq's names.
        class Chain
          include Enumerable

          # @param chain [Jobs::Chain]
          # @yieldreturn [Object] what each middleware is called with besides the others
          # @api private
          def initialize(chain = Jobs::Chain.new, &extra)
            @chain = chain
            @extra = extra
          end

          # @since 0.1.0
          def add(klass, *arguments) = change { |chain| chain.add(entry(klass, arguments)) }

          alias use add

          # @since 0.1.0
          def prepend(klass, *arguments) = change { |chain| chain.prepend(entry(klass, arguments)) }

          # Where there is no such class yet, it is the outermost.
          #
          # @since 0.1.0
          def insert_before(present, klass, *arguments)
            new = found(klass) || entry(klass, arguments)
            change { |chain| found(present) ? chain.insert_before(found(present), new) : chain.prepend(new) }
          end

          # Where there is no such class yet, it is the innermost.
          #
          # @since 0.1.0
          def insert_after(present, klass, *arguments)
            new = found(klass) || entry(klass, arguments)
            change { |chain| found(present) ? chain.insert_after(found(present), new) : chain.add(new) }
          end

          # @since 0.1.0
          def remove(klass)
            present = found(klass)
            present ? change { |chain| chain.remove(present) } : self
          end

          # @since 0.1.0
          def clear = change(&:clear)

          # @since 0.1.0
          def exists?(klass) = !found(klass).nil?

          alias include? exists?

          # @since 0.1.0
          def empty? = @chain.empty?

          # @yieldparam entry [Entry, Object] whose `klass` is the class
          # @since 0.1.0
          def each(&) = @chain.each(&)

          # @since 0.1.0
          def entries = @chain.to_a

          # @since 0.1.0
          def invoke(...) = @chain.invoke(...)

          # @api private
          attr_reader :chain

          private

          def entry(klass, arguments) = Entry.new(klass, arguments, @extra)

          def found(klass) = @chain.find { |each| each == klass }

          def change
            yield @chain
            self
          end

          def initialize_copy(other)
            @chain = other.chain.dup
          end
        end
      end
    end
  end
end
