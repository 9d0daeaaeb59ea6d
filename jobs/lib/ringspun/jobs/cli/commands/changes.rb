# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # Does something to some jobs, a page at a time.
      #
      # @api private
      class Change < Command
        CHOICES = %i[class jid tag text queue all yes json].freeze
        # Jobs in one call of the storage, whose other clients wait meanwhile.
        PAGE = 1000

        def call(names)
          check_choice
          @place = place_of(names)
          @done = @gone = 0
          counted = @options[:jid] ? Float::INFINITY : counted_and_meant
          return SUCCESS unless counted

          change(counted)
          report
          missing? ? FAILURE : SUCCESS
        end

        private

        # @return [Array<Boolean>] for each whether it was still there
        def apply(place, found) = raise(NotImplementedError)

        # @return [String] what was done to them
        def done = raise(NotImplementedError)

        # @return [Array<Symbol>] the sets from which it takes jobs; queues are as good if they are among them
        def sources = [:schedule, :retry, :dead, :queue]

        def check_choice
          chosen = @options.values_at(*Selection::OPTIONS).any?
          refuse("say which jobs: by --class, --jid, --tag, --text or --queue, or --all") unless chosen || @options[:all]
          refuse("--all and a choice exclude each other") if chosen && @options[:all]
        end

        def place_of(names)
          refuse("it takes one place, got #{names.join(" ")}") if names.size > 1
          return names.first ? source(names.first) : nil if names.any? || @options[:jid]

          refuse("say where: #{Selection::SETS.keys.join(", ")} or queue:NAME; a --jid is looked for everywhere")
        end

        def source(word)
          place = Selection.place_of(word)
          refuse("it does nothing to #{word}; it takes #{taken}") unless sources.include?(place.is_a?(Symbol) ? place : :queue)
          return place if place.is_a?(Symbol) || @storage.stats[:queues].key?(place)

          refuse("there is no queue #{place}")
        end

        def taken
          *others, last = sources.map { |source| Selection::SETS.key(source) || "queue:NAME" }
          "#{others.join(", ")} or #{last}"
        end

        def selection = @selection ||= Selection.new(@storage, @place, @options)

        # Whoever means all must say so, and whoever is asked must agree.
        def counted_and_meant
          count = @options[:all] ? size_of(@place) : selection.count
          return count if @options[:yes] || count.zero?

          unless @input.tty?
            return count unless @options[:all]

            refuse("--all of #{Selection.name_of(@place)} needs --yes where nobody can be asked")
          end
          @errors.print "#{self.class.title} #{jobs(count)} of #{Selection.name_of(@place)}? [y/N] "
          return count if @input.gets.to_s.strip.match?(/\Ay(es)?\z/i)

          @errors.puts "nothing is done"
          nil
        end

        def size_of(place)
          stats = @storage.stats
          return stats[:queues].fetch(place, 0) if place.is_a?(String)

          stats.fetch({ schedule: :scheduled, retry: :retries, dead: :dead }.fetch(place))
        end

        # No more than were counted: others may come in faster than these go.
        def change(counted)
          return change_queue(counted) if @place.is_a?(String) && !@options[:jid]

          selection.each_page do |found|
            change_page(found.first([counted - @done, found.size].min))
            break if @done >= counted
          end
        end

        # From the oldest on, for a search misses others of a queue from which jobs go.
        def change_queue(counted)
          stay = 0
          while @done < counted && (page = @storage.list(@place, stay, PAGE)).any?
            before = @done
            found = page.select { |job| wanted?(job) }.first([counted - @done, page.size].min)
            change_place(@place, found) if found.any?
            stay += page.size - (@done - before)
          end
        end

        def wanted?(stored)
          @options[:all] || (Wire.read(stored.entry)&.then { |job| selection.fits?(job, @place) })
        end

        def change_page(found)
          in_flight, others = found.partition { |one| one.place == :in_flight }
          in_flight.each do |one|
            @errors.puts Command.printable("#{Wire.jid(one.entry)} runs at #{one.node}; cancel it if it is to end")
          end
          others.group_by { |one| one.place == :queue ? one.queue : one.place }.each do |place, some|
            change_place(place, some) if sources.include?(place.is_a?(String) ? :queue : place)
          end
        end

        def change_place(place, some)
          answers = apply(place, some)
          @done += answers.count(true)
          @gone += answers.count(false)
          @seen = [*@seen, *some.zip(answers).filter_map { |one, there| Wire.jid(one.entry) if there }] if @options[:jid]
        end

        def missing = @options[:jid].to_a - @seen.to_a

        def missing? = missing.any?

        def report
          return tell({ done => @done, "gone" => @gone, "missing" => missing }) if json?

          say "#{jobs(@done)} #{done}#{", #{@gone} could not be: gone meanwhile, or no jobs" if @gone.positive?}"
          missing.each { |jid| say "there is no #{jid} to #{self.class.title}" }
        end
      end
      private_constant :Change

      # Moves jobs into their queues.
      #
      # @api private
      class Retry < Change
        command "retry [PLACE]", "has jobs of retries, dead or scheduled run now", *CHOICES

        private

        def sources = %i[retry dead schedule]
        def done = "enqueued"
        def apply(place, found) = @storage.retry_now(place, found.map(&:token))
      end
      private_constant :Retry

      # Moves jobs to the dead.
      #
      # @api private
      class Kill < Change
        command "kill [PLACE]", "moves jobs of retries, scheduled or queue:NAME to the dead", *CHOICES

        private

        def sources = %i[retry schedule queue]
        def done = "killed"
        def apply(place, found) = @storage.kill(place, found.map(&:token))
      end
      private_constant :Kill

      # Removes jobs.
      #
      # @api private
      class Delete < Change
        command "delete [PLACE]", "removes jobs of retries, dead, scheduled or queue:NAME for good", *CHOICES

        private

        def done = "deleted"
        def apply(place, found) = @storage.remove(place, found.map(&:token))
      end
      private_constant :Delete

      # Moves jobs to a queue.
      #
      # @api private
      class Move < Change
        command "move FROM TO", "moves jobs to the end of a queue; or all, by --from and --to, to another storage",
                *CHOICES, *Relocate::OPTIONS

        class << self
          def more = Relocate::MORE

          def storage?(options) = !Relocate.meant?(options)
        end

        def call(names)
          return super unless Relocate.meant?(@options)

          Relocate.new(nil, @options, input: @input, output: @output, errors: @errors).call(names)
        end

        private

        def done = "moved"

        def place_of(names)
          refuse("say from where to where, such as: move dead queue:default") unless names.size == 2

          @to = Selection.place_of(names.last)
          refuse("jobs are moved to a queue; to the dead by kill") if @to.is_a?(Symbol)
          refuse("#{@to} is the quarantine, into which only workers move jobs") if @to == Storage::QUARANTINE
          from = source(names.first)
          refuse("they are there already") if from == @to
          from
        end

        def apply(place, found)
          time = @storage.time
          @storage.move(place, found.map { |one| Storage::Move.new(one.token, moved(one.entry, time)) }, @to)
        end

        # It waits from now on.
        def moved(entry, time)
          job = Wire.parse_to_change(entry)
          job["queue"] = @to
          job["enqueued_at"] = Wire.time(time, milliseconds: job["enqueued_at"].is_a?(Integer))
          job.delete("at")
          Wire.dump(job)
        rescue MalformedEntryError
          nil
        end
      end
      private_constant :Move

      # Cancels jobs that run.
      #
      # @api private
      class Cancel < Command
        command "cancel JID...", "cancels jobs that run: their waits end, and they do not run again"

        def call(jids)
          refuse("it needs the jids of jobs") if jids.empty? || jids.include?("")

          if @storage.nodes.empty?
            say "no process runs jobs, so nobody was told"
            return FAILURE
          end

          jids.each { |jid| Worker.cancel(jid, storage: @storage) }
          say "all processes are told"
          SUCCESS
        end
      end
      private_constant :Cancel
    end
  end
end
