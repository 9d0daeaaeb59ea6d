# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # Prints jobs.
      #
      # @api private
      class List < Command
        # Jobs that are not chosen by anything.
        LIMIT = 100
        PAGE = 1000
        CHOICES = %i[class jid tag text queue limit all json].freeze

        private

        def limit
          limit = @options[:limit] || LIMIT
          refuse("--limit must be 1 or more, got #{limit}") unless limit.positive?

          @options[:all] ? Float::INFINITY : limit
        end

        # Prints them page by page, so that many do not have to be in memory.
        def show(rows)
          return rows.each { |row| tell(row) } if json?

          lines = Command.aligned(@headed ? nil : self.class::HEAD, rows.map { |row| cells(row) })
          @headed = true
          lines.each { |line| say(line) }
        end

        def shown(text, length = 60)
          text = Command.printable(text)
          text.size > length ? "#{text[0, length - 3]}..." : text
        end

        # The name of the class that is wrapped, where another one wraps it.
        def name_of(job) = job["wrapped"].is_a?(String) ? job["wrapped"] : job["class"]

        # Other programs may have written any time.
        def time_of(at)
          return if at.nil?

          at.to_f.finite? ? Time.at(at).strftime("%F %T") : "never"
        end
      end
      private_constant :List

      # Prints the jobs of a set.
      #
      # @api private
      class SetList < List
        HEAD = %w[at jid class queue arguments error].freeze

        def call(names)
          none(names)
          @left = limit
          chosen = @options.values_at(*Selection::OPTIONS).any?
          chosen ? through_search : through_pages
          SUCCESS
        end

        private

        def set = self.class::SET

        # In their order. The dead are kept for long: the newest first.
        def through_pages
          from = 0
          while @left.positive?
            page = @storage.scan(set, from, [PAGE, @left].min)
            break if page.empty?

            from += page.size
            show_some(page)
          end
        end

        def through_search
          Selection.new(@storage, set, @options).each_page do |found|
            show_some(found.first(@left.finite? ? @left : found.size))
            break unless @left.positive?
          end
        end

        def show_some(all)
          @left -= all.size
          show(all.map { |one| row(one) })
        end

        def row(stored)
          job = Wire.read(stored.entry)
          { "place" => Selection.name_of(set), "at" => stored.at, **(job ? { "job" => job } : { "entry" => stored.entry.scrub }) }
        end

        def cells(row)
          job = row["job"] or return [time_of(row["at"]), nil, nil, nil, shown(row["entry"]), "no job"]

          [time_of(row["at"]), job["jid"], name_of(job), job["queue"], shown(Command.json(job["args"])), error_of(job)]
        end

        def error_of(job) = job["error_class"] && shown("#{job["error_class"]}: #{job["error_message"]}")
      end
      private_constant :SetList

      # Jobs for later.
      #
      # @api private
      class Scheduled < SetList
        command "scheduled", "prints the jobs that are not due yet, those that are due first at the top", *CHOICES
        SET = :schedule
      end
      private_constant :Scheduled

      # Jobs that have failed.
      #
      # @api private
      class Retries < SetList
        command "retries", "prints the jobs that have failed and are tried again, those that are due first at the top", *CHOICES
        SET = :retry
      end
      private_constant :Retries

      # Jobs that are dead.
      #
      # @api private
      class Dead < SetList
        command "dead", "prints the jobs that are dead, those that died last at the top", *CHOICES
        SET = :dead

        private

        # From the end of the set on.
        def through_pages
          upto = @storage.stats[:dead]
          while upto.positive? && @left.positive?
            count = [PAGE, @left, upto].min
            upto -= count
            show_some(@storage.scan(:dead, upto, count).reverse)
          end
        end
      end
      private_constant :Dead

      # Jobs that run.
      #
      # @api private
      class Busy < List
        command "busy", "prints the jobs that run, as the processes have last announced it", *CHOICES
        HEAD = %w[since process jid class queue arguments].freeze

        def call(names)
          none(names)
          left = limit
          @selection = Selection.new(@storage, nil, @options)
          @storage.nodes.map { |node| node["identity"] }.each_slice(10) do |nodes|
            rows = @storage.work(nodes).flatten.map { |running| row(running) }
            rows.select! { |row| @selection.fits?(row["job"] || {}, row["queue"]) }
            rows = rows.first(left) if left.finite?
            left -= rows.size
            show(rows) if rows.any?
          end
          SUCCESS
        end

        private

        def row(running)
          job = Wire.read(running.entry)
          { "process" => running.node, "queue" => running.queue, "began_at" => running.began_at,
            **(job ? { "job" => job } : { "entry" => running.entry.scrub }) }
        end

        def cells(row)
          job = row["job"] || { "args" => row["entry"] }
          [time_of(row["began_at"]), row["process"], job["jid"], name_of(job), row["queue"], shown(Command.json(job["args"]))]
        end
      end
      private_constant :Busy
    end
  end
end
