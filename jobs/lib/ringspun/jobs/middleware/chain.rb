# frozen_string_literal: true

module Ringspun
  module Jobs
    # Middleware: what is called around each job that is enqueued (config.client_middleware) or run
    # (config.server_middleware), in order, the first one outermost.
    #
    #   class Tag
    #     def call(job_class, job, queue)
    #       job["tags"] = ["web"]
    #       yield
    #     end
    #   end
    #   config.client_middleware.add(Tag)
    #
    # A client middleware is called with the job's class (or its name), the job and its queue; one that does not yield stops
    # the job. A job that is not to wait for a time has its `enqueued_at` then, in the form in which it is stored. A server
    # middleware is called with the job's instance, the job and its queue.
    #
    # A class is instantiated for each call, with the arguments it was added with. Any other object with a method `call` is used
    # as it is.
    class Chain
      include Enumerable

      Link = Struct.new(:middleware, :arguments) do
        def instance = middleware.is_a?(Class) ? middleware.new(*arguments) : middleware
      end
      private_constant :Link

      # @since 0.1.0
      def initialize
        @links = [].freeze
      end

      # Adds a middleware as the innermost. One that is in the chain already is moved there.
      #
      # @param middleware [Class, #call]
      # @param arguments [Array<Object>] for the `new` of a class
      # @return [Chain] self
      # @raise [ConfigError] when it cannot be called
      # @since 0.1.0
      def add(middleware, *arguments)
        link = link_of(middleware, arguments)
        change { without(middleware).push(link) }
      end

      # Adds a middleware as the outermost. See {#add}.
      #
      # @param middleware (see #add)
      # @param arguments (see #add)
      # @return [Chain] self
      # @raise (see #add)
      # @since 0.1.0
      def prepend(middleware, *arguments)
        link = link_of(middleware, arguments)
        change { without(middleware).unshift(link) }
      end

      # Adds a middleware right outside of another one. See {#add}.
      #
      # @param present [Class, #call] which is in the chain
      # @param middleware (see #add)
      # @param arguments (see #add)
      # @return [Chain] self
      # @raise [ConfigError] when the present one is not in the chain, or the new one cannot be called
      # @since 0.1.0
      def insert_before(present, middleware, *arguments) = insert(present, middleware, arguments, 0)

      # Adds a middleware right inside of another one. See {#insert_before}.
      #
      # @param present (see #insert_before)
      # @param middleware (see #add)
      # @param arguments (see #add)
      # @return [Chain] self
      # @raise (see #insert_before)
      # @since 0.1.0
      def insert_after(present, middleware, *arguments) = insert(present, middleware, arguments, 1)

      # Removes a middleware, if it is in the chain.
      #
      # @param middleware [Class, #call]
      # @return [Chain] self
      # @since 0.1.0
      def remove(middleware) = change { without(middleware) }

      # Removes all.
      #
      # @return [Chain] self
      # @since 0.1.0
      def clear = change { [] }

      # @return [Boolean]
      # @since 0.1.0
      def empty? = @links.empty?

      # @yieldparam middleware [Class, #call]
      # @return [Array<Class, #call>, Enumerator] without a block an Enumerator
      # @since 0.1.0
      def each(&) = @links.map(&:middleware).each(&)

      # Calls all of them around the block.
      #
      # May switch strands, where one of them does.
      #
      # @param arguments [Array<Object>] for each `call`
      # @return [Object] what the outermost returns; in an empty chain, the block's value
      # @since 0.1.0
      def invoke(*arguments, &)
        links = @links
        links.empty? ? yield : step(links, 0, arguments, &)
      end

      private

      # A new Array, for calls under way go on with the old one.
      def change
        @links = yield.freeze
        self
      end

      def without(middleware) = @links.reject { |link| link.middleware == middleware }

      def insert(present, middleware, arguments, offset)
        link = link_of(middleware, arguments)
        links = without(middleware)
        index = links.index { |each| each.middleware == present }
        raise ConfigError, "#{present.inspect} is not in the chain, which has #{to_a.inspect}" unless index

        change { links.insert(index + offset, link) }
      end

      def link_of(middleware, arguments)
        callable = middleware.is_a?(Class) ? middleware.method_defined?(:call) : middleware.respond_to?(:call)
        raise ConfigError, "a middleware must have a method `call`, got #{middleware.inspect}" unless callable
        return Link.new(middleware, arguments) if middleware.is_a?(Class) || arguments.empty?

        raise ConfigError, "arguments are for a class, which is made with them; #{middleware.inspect} is used as it is"
      end

      def step(links, index, arguments, &)
        return yield if index == links.size

        links[index].instance.call(*arguments) { step(links, index + 1, arguments, &) }
      end
    end
  end
end
