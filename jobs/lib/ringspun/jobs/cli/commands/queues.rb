# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # Has all workers pass over queues.
      #
      # @api private
      class Pause < Command
        command "pause QUEUE...", "has all workers pass over queues"

        # A queue that nobody has used is more often a typing error than meant.
        def call(queues)
          refuse("it needs the names of queues") if queues.empty? || queues.include?("")

          queues.each do |word|
            queue = Selection.queue_of(word)
            @storage.pause(queue)
            known = @storage.stats[:queues].key?(queue)
            say "#{queue} is paused#{"; nothing was ever enqueued there" unless known}"
          end
          SUCCESS
        end
      end
      private_constant :Pause

      # Has them go on.
      #
      # @api private
      class Resume < Command
        command "resume QUEUE...", "has them go on with queues"

        def call(queues)
          refuse("it needs the names of queues") if queues.empty? || queues.include?("")

          paused = @storage.paused
          queues.each do |word|
            queue = Selection.queue_of(word)
            @storage.resume(queue)
            say paused.include?(queue) ? "#{queue} goes on" : "#{queue} was not paused"
          end
          SUCCESS
        end
      end
      private_constant :Resume

      # How many jobs wait where.
      #
      # @api private
      class Queues < Command
        command "queues", "prints how many jobs wait in each queue, and how long the next one has waited", :json

        def call(names)
          none(names)
          sample = Metrics.sample(@storage)
          served = Served.new(@storage.nodes)
          rows = sample.queues.map { |queue| row(sample, queue).merge("processes" => served.count(queue)) }
          head = ["queue", "waiting", "latency", "processes", nil]
          return rows.each { |row| tell(row) } && SUCCESS if json?

          table(head, rows.map { |row| cells(row) })
          say("in #{@storage.identity}")
          SUCCESS
        end

        private

        def row(sample, queue)
          { "queue" => queue, "size" => sample.stats[:queues].fetch(queue, 0), "latency" => sample.latencies[queue]&.round(3),
            "paused" => sample.paused.include?(queue) }
        end

        def cells(row)
          latency = row["latency"] && Words.duration(row["latency"])
          [row["queue"], row["size"], latency, row["processes"], ("paused" if row["paused"])]
        end
      end
      private_constant :Queues

      # What keeps jobs from being run.
      #
      # @api private
      class Check < Command
        command "check", "says what is wrong with the storage, and which queues no worker serves; then its status is 1", :json

        def call(names)
          none(names)
          nodes = @storage.nodes
          wrong = [*@storage.risks, *("no worker runs on #{@storage.identity}" if nodes.empty?), *unserved(nodes)]
          json? ? tell({ "processes" => nodes.size, "wrong" => wrong }) : wrong.each { |line| say(line) }
          say("#{Words.count(nodes.size, "process", "processes")}, nothing is wrong") unless json? || wrong.any?
          wrong.empty? ? SUCCESS : FAILURE
        end

        private

        def unserved(nodes)
          waiting = @storage.stats[:queues].select { |_queue, size| size.positive? }
          Served.new(nodes).unserved(waiting.keys).map do |queue|
            "no worker serves #{queue}, where #{jobs(waiting[queue])} #{Words.noun(waiting[queue], "waits", "wait")}"
          end
        end
      end
      private_constant :Check

      # What monitoring reads.
      #
      # @api private
      class Figures < Command
        command "metrics", "prints numbers for monitoring, in Prometheus' text format"

        def call(names)
          none(names)
          @output.puts Metrics.text(@storage)
          SUCCESS
        end
      end
      private_constant :Figures

      # How many jobs wait and run.
      #
      # @api private
      class Status < Command
        command "status", "prints how many jobs wait in which queue, and run in which process", :json

        def call(names)
          none(names)
          stats = @storage.stats
          paused = @storage.paused
          nodes = @storage.nodes
          return tell_all(stats, paused, nodes) if json?

          queues(stats, paused)
          processes(nodes)
          say(Storage::STATS.first(7).map { |name| "#{name.name.tr("_", " ")} #{stats[name]}" }.join(", "))
          say("#{stats[:twice]} ran twice, for their process had lost its lease") if stats[:twice].positive?
          say("in #{@storage.identity}")
          SUCCESS
        end

        private

        def tell_all(stats, paused, nodes)
          tell({ "storage" => @storage.identity, **stats.except(:nodes), "paused" => paused, "processes" => nodes })
          SUCCESS
        end

        def queues(stats, paused)
          sizes = stats[:queues]
          rows = (sizes.keys | paused).sort.map do |queue|
            state = "paused" if paused.include?(queue)
            state = "no list: its key holds something else" if stats[:unreadable].include?(queue)
            [queue, sizes.fetch(queue, 0), state]
          end
          table(["queue", "waiting", nil], rows)
        end

        def processes(nodes)
          rows = nodes.map do |node|
            [node["identity"], node["busy"], node["concurrency"], [*node["queues"]].join(","), ("quiet" if node["quiet"])]
          end
          table(["process", "busy", "of", "serves", nil], rows)
        end
      end
      private_constant :Status
    end
  end
end
