# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # Lines of JSON, one for each job, which {Import} reads back: the place, the time if it has one, and the entry as it is.
      #
      # @api private
      class Export < Command
        command "export PLACE|all [FILE]", "writes the jobs of a place, or all that do not run, as lines of JSON"
        # Jobs in one call of the storage, whose other clients wait meanwhile.
        PAGE = 1000

        def call(names)
          refuse("say what: all, #{Selection::SETS.keys.join(", ")} or queue:NAME") if names.empty?
          refuse("it takes a place and a file, got #{names.join(" ")}") if names.size > 2

          places = places_of(names.first)
          @count = 0
          write_all = ->(file) { places.each { |place| export(place, file) } }
          [nil, "-"].include?(names[1]) ? write_all.call(@output) && @output.flush : into(names[1], &write_all)
          @errors.puts "#{jobs(@count)} exported"
          SUCCESS
        end

        private

        def places_of(word)
          queues = @storage.stats[:queues].keys
          return [*Storage::SETS, *queues] if word == "all"

          place = Selection.place_of(word)
          refuse("there is no queue #{place}") unless place.is_a?(Symbol) || queues.include?(place)
          [place]
        end

        # Arguments may be secret, so the file is the owner's only; and no earlier export is lost.
        def into(path)
          ::File.open(path, ::File::WRONLY | ::File::CREAT | ::File::EXCL, 0o600) { |file| yield file }
        rescue Errno::EEXIST
          refuse("#{path} is there already")
        rescue SystemCallError => error
          refuse("#{path} cannot be written: #{error.message}")
        end

        def export(place, file)
          return queue(place) { |jobs| write(place, jobs, file) } if place.is_a?(String)

          Selection.new(@storage, place, {}).each_page { |found| write(place, found, file) }
        end

        # In their order, the next one first. Those that are fetched meanwhile shift the others towards the front, so each page
        # begins a page earlier than it must, and leaves out what was seen.
        def queue(name)
          from = 0
          last = nil
          loop do
            start = [from - PAGE, 0].max
            page = @storage.list(name, start, from - start + PAGE)
            seen = last && page.rindex { |job| job.token == last }
            jobs = last && seen.nil? && start.positive? ? @storage.list(name, start = 0, PAGE) : page.drop(seen ? seen + 1 : 0)
            return if jobs.empty?

            yield jobs
            last = jobs.last.token
            from = start + (seen ? seen + 1 : 0) + jobs.size
          end
        end

        def write(place, jobs, file)
          @count += jobs.size
          jobs.each { |job| file.puts(JSON.generate(line_of(place, job))) }
        end

        # Bytes that are no text stay what they are.
        def line_of(place, job)
          entry = job.entry.dup.force_encoding(Encoding::UTF_8)
          text = entry.valid_encoding? ? { "entry" => entry } : { "base64" => [entry].pack("m0") }
          { "place" => Selection.name_of(place), **({ "at" => job.at.clamp(-Float::MAX, Float::MAX) } if job.at).to_h, **text }
        end
      end
      private_constant :Export

      # Stores what was exported. Jobs that are somewhere in the storage are left out, so it can be done again; but those that
      # have run meanwhile would run again.
      #
      # @api private
      class Import < Command
        command "import [FILE]", "stores the jobs of an export again, but for those that are there", :json
        # Jobs in one call of the storage, whose other clients wait meanwhile.
        PAGE = 1000

        def call(names)
          refuse("it takes one file, got #{names.join(" ")}") if names.size > 1

          @stored = @there = 0
          from(names.first) do |file|
            @jids = jids_there
            file.each_line.with_index(1).each_slice(PAGE) { |lines| import(lines.map { |line, number| read(line, number) }) }
          end
          json? ? tell({ "imported" => @stored, "there" => @there }) : say(imported)
          SUCCESS
        end

        private

        def imported = "#{jobs(@stored)} imported, #{@there} #{Words.noun(@there, "was", "were")} there"

        def from(path)
          return yield(@input) if [nil, "-"].include?(path)

          ::File.open(path) { |file| yield file }
        rescue SystemCallError => error
          refuse("#{path} cannot be read: #{error.message}")
        end

        def read(line, number)
          fields = JSON.parse(line.force_encoding(Encoding::UTF_8)) # whatever the locale is
          entry = fields["entry"] || fields["base64"].unpack1("m0")
          place = Selection.place_of(fields.fetch("place"))
          at = fields["at"]
          raise ArgumentError if place.is_a?(Symbol) != at.is_a?(Numeric) || !entry.is_a?(String)

          [place, Storage::Stored.new(nil, entry, at)]
        rescue StandardError
          refuse("line #{number} is none of an export; before it #{jobs(@stored)} #{Words.noun(@stored, "was", "were")} imported")
        end

        def jids_there
          jids = Set.new
          Selection.new(@storage, nil, {}).each_page { |found| found.each { |one| jids << Wire.jid(one.entry) } }
          jids.delete(nil)
        end

        # Jobs of one place that follow each other go in one call, in their order.
        def import(lines)
          fresh = lines.reject do |_, stored|
            jid = Wire.jid(stored.entry)
            jid && !@jids.add?(jid)
          end
          @there += lines.size - fresh.size
          fresh.chunk_while { |one, other| one.first == other.first }.each do |chunk|
            answers = @storage.restore(chunk.first.first, chunk.map(&:last))
            @stored += answers.count(true)
            @there += answers.count(false)
          end
        end
      end
      private_constant :Import
    end
  end
end
