# frozen_string_literal: true

require "digest"

module Ringspun
  module Jobs
    class Web
      # A queue or a set, of which there is a page.
      #
      # @api private
      class Place
        # The names of pages, and the sets that they show.
        SETS = { "scheduled" => :schedule, "retries" => :retry, "dead" => :dead }.freeze
        TITLES = { schedule: "Scheduled", retry: "Retries", dead: "Dead" }.freeze
        COUNTS = { schedule: :scheduled, retry: :retries, dead: :dead }.freeze
        # Jobs on a page.
        PAGE = 50
        # Jobs before and behind a page that may be looked at for one that was on it: others have left meanwhile, or come.
        AROUND = 100
        # The most bytes that stand for a job in a form.
        KEY_SIZE = 32

        # What stands for a job in a form: its token may be as long as the job.
        #
        # @param token [String]
        # @return [String]
        def self.key(token) = Digest::SHA256.hexdigest(token)[0, KEY_SIZE]

        # @param request [Request]
        # @return [Place, nil]
        def self.asked(request)
          name = request[:place]
          return new(SETS[name]) if SETS.key?(name)

          new(request[:queue]) if name == "queue" && request[:queue]
        end

        # @param request [Request]
        # @return [Integer] see {#locate}
        def self.at(request) = request[:at].to_s.b[/\A-?\d{1,12}\z/].to_i

        # @return [String, Symbol] as the storage calls it
        attr_reader :id

        # @param id [String, Symbol]
        def initialize(id) = @id = id

        # @return [Boolean]
        def queue? = @id.is_a?(String)

        # @return [String]
        def title = queue? ? "Queue #{@id}" : TITLES.fetch(@id)

        # @return [Hash{Symbol => String}] which {.asked} reads
        def query = queue? ? { place: "queue", queue: @id } : { place: SETS.key(@id) }

        # @return [String] the path of its page
        def path = queue? ? "/queue" : "/#{SETS.key(@id)}"

        # The dead are listed from the one that died last.
        def newest_first? = @id == :dead

        # @param sample [Metrics::Sample]
        # @return [Integer] how many jobs there are
        def size(sample) = queue? ? sample.stats[:queues].fetch(@id, 0) : sample.stats[COUNTS.fetch(@id)]

        # @param from [Integer] how many come before on the pages
        # @param size [Integer]
        # @param last_first [Boolean]
        # @return [Array<Array(Storage::Stored, Integer)>] the jobs of a page, each with its place for {#locate}
        def page(storage, from, size, last_first: newest_first?)
          return numbered(read(storage, from, PAGE, last_first), from, last_first) if from <= size / 2 || from >= size

          # From the nearer end, for the storage may have to step over all that is before.
          count = [size - from, PAGE].min
          behind = size - from - count
          numbered(read(storage, behind, count, !last_first), behind, !last_first).reverse
        end

        # Looks for jobs near where they were, and then in the whole place.
        #
        # @param keys [Array<String>]
        # @param at [Integer] where the first of them was: 0 is the first one, -1 the last
        # @param jids [Hash{String => String}] of some of the keys
        # @param seconds [Float] which that may take
        # @return [Hash{String => Storage::Stored, Storage::Found}] those that were found
        def locate(storage, keys, at, jids = {}, seconds: Searched::SECONDS)
          index = at.negative? ? -at - 1 : at
          first = [index - AROUND, 0].max
          found = by_keys(read(storage, first, PAGE + AROUND + index - first, at.negative?), keys)
          (keys - found.keys).each do |key|
            next unless jids[key]

            searched = Searched.new(storage, { places: [@id], jid: jids[key] }, seconds: seconds).go
            found.merge!(by_keys(searched.found, [key]))
            seconds -= searched.took
          end
          found
        end

        # @param jobs [Array<Storage::Stored, Storage::Found>]
        # @param keys [Array<String>]
        # @return [Hash{String => Storage::Stored, Storage::Found}] those that have one of the keys
        def by_keys(jobs, keys) = jobs.to_h { |job| [Place.key(job.token), job] }.slice(*keys)

        private

        def read(storage, first, count, from_end)
          queue? ? storage.list(@id, first, count, from_end: from_end) : storage.scan(@id, first, count, from_end: from_end)
        end

        def numbered(jobs, first, from_end)
          jobs.each_with_index.map { |job, index| [job, from_end ? -1 - first - index : first + index] }
        end
      end
      private_constant :Place
    end
  end
end
