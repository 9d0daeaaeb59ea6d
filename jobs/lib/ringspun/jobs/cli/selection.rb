# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # The jobs that a command is about: those of a place, or some of them.
      #
      # @api private
      class Selection
        # What people call the sets.
        SETS = { "scheduled" => :schedule, "retries" => :retry, "dead" => :dead }.freeze
        # The options that choose.
        OPTIONS = %i[class jid tag text queue].freeze

        # @param word [String] one of {SETS}, or a queue: "queue:NAME" or, if it is not called like a set, its name
        # @return [Symbol, String]
        # @raise [ConfigError]
        def self.place_of(word)
          name = queue_of(word)
          name == word ? SETS.fetch(word, word) : name
        end

        # @param word [String] "queue:NAME", or the name alone
        # @return [String]
        # @raise [ConfigError]
        def self.queue_of(word)
          name = word.delete_prefix("queue:")
          raise ConfigError, "#{word.inspect} is no place; there are #{SETS.keys.join(", ")} and queue:NAME" if name.empty?

          name
        end

        # @param place [Symbol, String]
        # @return [String]
        def self.name_of(place) = place.is_a?(Symbol) ? SETS.key(place) || place.name : "queue:#{place}"

        # @param storage [Storage]
        # @param place [Symbol, String, nil] nil: everywhere
        # @param options [Hash{Symbol => Object}]
        def initialize(storage, place, options)
          @storage = storage
          @places = place && [place]
          @jids = options[:jid]
          @conditions = { job_class: options[:class], tag: options[:tag], text: options[:text], queue: options[:queue] }
          @options = options
        end

        # @param job [Hash]
        # @param queue [String] where it was found
        # @return [Boolean] whether it meets the conditions
        def fits?(job, queue)
          @options.slice(*OPTIONS).all? do |name, value|
            case name
            when :class then [job["class"], job["wrapped"]].include?(value)
            when :jid then value.include?(job["jid"])
            when :tag then [*job["tags"]].include?(value)
            when :text then text_in?(job["args"], value)
            when :queue then [queue, job["queue"]].include?(value)
            end
          end
        end

        # Pages of the jobs, as {Storage#search} finds them. May switch strands.
        #
        # @yieldparam found [Array<Storage::Found>]
        def each_page
          (@jids || [nil]).each do |jid|
            cursor = nil
            loop do
              page = @storage.search(places: @places, **@conditions, jid: jid, cursor: cursor)
              yield page.found if page.found.any?
              cursor = page.cursor or break
            end
          end
        end

        # @return [Integer] how many there are
        def count
          count = 0
          each_page { |found| count += found.size }
          count
        end

        private

        def text_in?(value, text)
          case value
          when Array then value.any? { |each| text_in?(each, text) }
          when Hash then value.any? { |name, each| name.include?(text) || text_in?(each, text) }
          else value.to_s.include?(text)
          end
        end
      end
      private_constant :Selection
    end
  end
end
