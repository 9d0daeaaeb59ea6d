# frozen_string_literal: true

require_relative "../relocation"

module Ringspun
  module Jobs
    class CLI
      # The command move between two storages.
      #
      # @api private
      class Relocate < Command
        OPTIONS = %i[from to dry_run once stay].freeze
        # The options that may stand beside these.
        TAKEN = [*OPTIONS, :json].freeze
        # What {Storage#stats} counts of jobs that are to be moved.
        LEFT = { enqueued: "in queues", scheduled: "scheduled", retries: "in retries", dead: "dead",
                 in_flight: "in flight" }.freeze
        # Seconds from one line about how far it is to the next.
        PROGRESS_SECONDS = 2
        private_constant :TAKEN, :LEFT, :PROGRESS_SECONDS

        # The lines of its help that say what the options do not.
        MORE = <<~TEXT
          Jobs that are moved to a queue also belong there from then on, as their entries say.

          With --from and --to it moves all jobs of one storage to another, while workers of both run: first --to is
          told, then --from, so that no job is lost whenever it is killed; run it again then. STORAGE is what --storage
          takes, or the URL of a server. It ends when the old storage is empty, and waits for jobs in flight there. Moved are queues in their order, with priorities and unique
          locks; scheduled and retried jobs; the dead; the quarantine; which queues and entries of cron are paused.
          Not moved are histories, results, jobs that are done, counts, and locks that have no job any more.
        TEXT

        class << self
          # @param options [Hash{Symbol => Object}]
          # @return [Boolean] whether these are of two storages
          def meant?(options) = OPTIONS.any? { |name| options.key?(name) }

          def title = "move"
        end

        def call(names)
          check(names)
          return count if @options[:dry_run]

          @source = storage_of(@options[:from])
          @target = storage_of(@options[:to])
          relocation = Relocation.new(@source, @target)
          refuse("--from and --to are the same place, #{@source.identity}") if relocation.same?

          @counts = relocation.counts
          stopping { move(relocation) }
          report
          @stopped && !@options[:stay] ? INTERRUPTED : SUCCESS
        ensure
          [@source, @target].each { |storage| storage&.close }
        end

        private

        # Where it is told to end, what the target has of a page must leave the source before.
        def move(relocation)
          each_page = lambda do
            tell_progress
            throw :stop if @stopped
          end
          catch(:stop) { relocation.run(each_page) { |left| go_on?(left) } }
          @left = @source.stats if @stopped
        end

        # The second signal ends it at once.
        def stopping
          before = %w[INT TERM].to_h { |name| [name, Signal.trap(name) { @stopped ? raise(Interrupt) : @stopped = true }] }
          yield
        ensure
          before&.each { |name, handler| Signal.trap(name, handler || "DEFAULT") }
        end

        def check(names)
          where = "say from where to where: move --from STORAGE --to STORAGE; there are #{Storage.forms}"
          refuse(where) unless @options[:from] && @options[:to]
          refuse("from one storage to another it moves all jobs, and takes no #{names.first.inspect}") if names.any?
          other = (@options.keys - TAKEN).first
          refuse("from one storage to another it moves all jobs, and takes no --#{other.name.tr("_", "-")}") if other
          refuse("--once and --stay exclude each other") if @options[:once] && @options[:stay]
        end

        # Only workers know of done jobs, and a storage without tables refuses to hear of them.
        def storage_of(word)
          config = Jobs.config.dup
          config.keep_done = 0
          Storage.call_by(config, word, Dir.pwd)
          storage = Storage.for(config)
          storage.shared? ? storage : refuse("#{word} is in the memory of this process, where no other one finds it")
        end

        def go_on?(left)
          @left = left
          tell_progress
          !@stopped && !@options[:once] && (@options[:stay] || jobs_left.positive?)
        end

        def jobs_left = @left.values_at(*LEFT.keys).sum

        def tell_progress
          time = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          return @told_at ||= time unless @told_at && time - @told_at >= PROGRESS_SECONDS

          @told_at = time
          line = "#{jobs(@counts.moved)} moved#{"; left: #{what_is_left(@left)}" if @left}"
          @errors.puts Command.printable(line) unless line == @told
          @told = line
        end

        def what_is_left(stats)
          parts = LEFT.filter_map { |name, words| "#{Words.number(stats[name])} #{words}" if stats[name].positive? }
          parts.empty? ? "nothing" : parts.join(", ")
        end

        # Nothing is changed, and nobody asks the target.
        def count
          @source = storage_of(@options[:from])
          stats = @source.stats
          return tell(facts(stats)) || SUCCESS if json?

          rows = stats[:queues].reject { |_, size| size.zero? }.map { |queue, size| ["queue:#{queue}", size] }
          sets = LEFT.keys - [:enqueued]
          table(nil, rows + sets.map { |name| [name == :in_flight ? LEFT[name] : name.name, stats[name]] })
          paused = @source.paused
          say "paused: #{paused.join(", ")}" if paused.any?
          tell_unreadable(stats)
          say "nothing was moved"
          SUCCESS
        end

        def facts(stats) = { "queues" => stats[:queues], **LEFT.keys.to_h { |name| [name.name, stats[name]] } }

        def report
          serving = @source.nodes.size
          if json?
            return tell("moved" => @counts.moved, "there" => @counts.there, "gone" => @counts.gone, "left" => facts(@left),
                        "processes" => serving)
          end

          say "#{jobs(@counts.moved)} moved from #{@source.identity} to #{@target.identity}"
          say "#{jobs(@counts.there)} #{Words.noun(@counts.there, "was", "were")} there already" if @counts.there.positive?
          say "#{jobs(@counts.gone)} had left the old storage meanwhile, and may run twice" if @counts.gone.positive?
          say "left: #{what_is_left(@left)}" if jobs_left.positive?
          tell_unreadable(@left)
          return if serving.zero?

          say "#{Words.count(serving, "process", "processes")} still #{Words.noun(serving, "serves", "serve")} the old storage"
        end

        def tell_unreadable(stats)
          return if stats[:unreadable].empty?

          say "cannot be read, and stay: #{stats[:unreadable].join(", ")}"
        end
      end
      private_constant :Relocate
    end
  end
end
