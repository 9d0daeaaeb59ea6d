# frozen_string_literal: true

require "json"

module Ringspun
  module Jobs
    class Storage
      # Looks through a storage page by page. A storage that includes this has:
      #
      # - `places_of(kinds, queues, connection)`, the places that there are of some kinds, and those of some queues
      # - `examine(place, position, count, needle, connection)`, which looks at the next entries of a place. It returns those that
      #   have the needle in their bytes, as {Found}; how many it has looked at; and the position from which on to look next,
      #   nil at the end. A storage may look at more than `count`.
      #
      # @api private
      module Searching
        # A place: a kind, one of {Storage::SETS}, :queue or :in_flight; with the name of the queue, and with a part of that. For
        # what is in flight the part is the node.
        Place = Struct.new(:kind, :queue, :part) do
          def order = [ORDER.index(kind), queue.to_s.b, part.to_s.b]
        end

        # The way that a job goes most often. So one that moves on meanwhile is seen twice rather than missed.
        ORDER = %i[schedule retry queue in_flight dead].freeze

        # What is looked for.
        class Wanted
          # What no program writes into JSON as an escape sequence.
          PLAIN = %r{[^\x00-\x1f\x7f-\u{10ffff}"\\/<>&']+}

          # @return [String] a part that the entry of each job that is looked for has in its bytes; "" if there is none
          attr_reader :needle

          # @param named [Boolean] whether it is only looked for in places where jobs name their queues
          def initialize(job_class, jid, tag, text, queue, named:)
            @job_class = job_class && name_of(job_class)
            @jid = jid&.to_s
            @tag = tag&.to_s
            @text = text_of(text)
            @queue = queue&.to_s
            @needle = longest_part([@job_class, @jid, @tag, @text, *(@queue if named && @queue != "default")].compact)
            @queue_alone = [job_class, jid, tag, text].none?
          end

          # @param found [Found]
          def match?(found)
            return false if found.queue && !fits?(@queue, found.queue)
            return true if @queue_alone && (@queue.nil? || found.queue)

            job = Wire.read(found.entry) or return false
            fits?(@jid, job["jid"]) && fits?(@job_class, job["class"], job["wrapped"]) && fits?(@tag, *job["tags"]) &&
              fits?(@queue, found.queue || job["queue"] || "default") && (@text.nil? || text_in?(job["args"]))
          end

          private

          def longest_part(texts) = texts.flat_map { |each| each.scrub("\0").scan(PLAIN) }.max_by(&:bytesize) || ""

          def name_of(job_class) = job_class.is_a?(Module) ? job_class.name : job_class.to_s

          def text_of(text)
            return text&.to_s if text.nil? || text.is_a?(String) || text.is_a?(Numeric)

            raise UsageError, "text: must be a String, a part of an argument, got #{text.inspect}"
          end

          def fits?(wanted, *values) = wanted.nil? || values.include?(wanted)

          def text_in?(value)
            case value
            when Array then value.any? { |each| text_in?(each) }
            when Hash then value.any? { |name, each| name.include?(@text) || text_in?(each) }
            when String then value.include?(@text)
            else JSON.generate(value).include?(@text)
            end
          end
        end
        private_constant :Place, :ORDER, :Wanted

        # (see Storage#find)
        def find(jid, connection: nil)
          return unless jid.is_a?(String) # without a jid any job would do

          cursor = nil
          loop do
            page = search(jid: jid, cursor: cursor, connection: connection)
            return page.found.first if page.found.any?

            cursor = page.cursor or return
          end
        end

        # (see Storage#search)
        def search(places: nil, job_class: nil, jid: nil, tag: nil, text: nil, queue: nil, count: 1000, cursor: nil,
                   connection: nil)
          places &&= [*places]
          wanted = Wanted.new(job_class, jid, tag, text, queue, named: places && (places - SETS).empty?)
          page = Page.new([], 0)
          last, position = read_cursor(cursor)
          places_from(places, last, connection).each do |place|
            position = nil unless place == last
            loop do
              page.cursor = cursor_of(place, position)
              return page if page.looked >= count

              found, looked, position = examine(place, position, count - page.looked, wanted.needle, connection)
              page.found.concat(found.select { |one| wanted.match?(one) })
              page.looked += looked
              break unless position
            end
          end
          page.cursor = nil
          page
        end

        private

        def places_from(wanted, last, connection)
          queues, kinds = wanted ? wanted.partition { |place| place.is_a?(String) } : [[], ORDER]
          unknown = kinds - ORDER
          raise ArgumentError, "there is no place #{unknown.first.inspect} to search" if unknown.any?

          places = places_of(kinds, queues, connection)
          places.reject! { |place| (place.order <=> last.order).negative? } if last
          places.uniq.sort_by(&:order)
        end

        # The names of queues and nodes may be any bytes.
        def cursor_of(place, position)
          names = [place.queue, place.part].map { |name| name && [name].pack("m0") }
          [JSON.generate([place.kind, *names, position])].pack("m0")
        end

        def read_cursor(cursor)
          return unless cursor

          kind, *names, position = JSON.parse(cursor.unpack1("m0"))
          queue, part = names.map { |name| name&.unpack1("m0")&.force_encoding(Encoding::UTF_8) }
          [Place.new(ORDER.find { |each| each.name == kind } || raise(ArgumentError), queue, part), position]
        rescue ArgumentError, JSON::ParserError, NoMethodError
          raise ArgumentError, "#{cursor.inspect} is no cursor of a page"
        end
      end
      private_constant :Searching
    end
  end
end
