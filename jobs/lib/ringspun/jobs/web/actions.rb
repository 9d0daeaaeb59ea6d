# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # What buttons do. Each answers where the browser goes next, where a notice says what has been done.
      #
      # @api private
      class Actions
        # Seconds for which a request retries or cancels jobs; whoever wants more presses again.
        SECONDS = 1.0
        STEP = 500
        SIGNALS = { "quiet" => "TSTP", "stop" => "TERM" }.freeze

        # @param view [View]
        def initialize(view)
          @request = view.request
          @storage = view.storage
          @sampler = view.sampler
        end

        # @return [Array(String, Hash), nil] a path and its query; nil: there is no such button
        # @raise [ConfigError, InvalidJobError] a job of a schedule cannot be made here
        def call
          case @request.path
          when "/jobs" then jobs
          when "/all" then all
          when "/queues" then queue
          when "/cancel" then cancel
          when "/processes" then process
          when "/cron" then cron
          end
        ensure
          @sampler.forget
        end

        private

        def act = @request[:act]

        def said(path, query, done, gone, left = 0)
          [path, { **query, said: act, n: done, gone: gone, left: left }]
        end

        def jobs
          place = Place.asked(@request)
          return unless place && Listing.acts(place.id).key?(act)

          jids = @request.all(:key).to_h { |key| key.b.split(":", 2).then { |digest, jid| [digest, Request.decode(jid.to_s)] } }
          filter = Filter.new(@request, place)
          done = carry_out(place.id, locate(place, filter, jids).map(&:token)).count(true)
          back = { **place.query, **filter.here, from: @request.number(:from), order: @request[:order] }.compact
          said(place.path, back, done, jids.size - done)
        end

        # Those of a page with a filter are where it has found them.
        def locate(place, filter, jids)
          found = filter.any? ? place.by_keys(filter.search(@storage).found, jids.keys) : {}
          left = jids.except(*found.keys)
          return found.values if left.empty?

          near = place.locate(@storage, left.keys, Place.at(@request), left.reject { |_, jid| jid.empty? })
          [*found.values, *near.values]
        rescue ArgumentError # the cursor in the address is none
          []
        end

        def carry_out(place, tokens)
          return [] if tokens.empty?

          case act
          when "retry" then @storage.retry_now(place, tokens)
          when "kill" then @storage.kill(place, tokens)
          when "delete" then @storage.remove(place, tokens)
          end
        end

        def all
          place = Place.asked(@request) or return
          case act
          when "clear" then said(place.path, place.query, @storage.clear(place.id), 0)
          when "retry"
            return if place.queue?

            done, left = retry_all(place.id)
            said(place.path, place.query, done, 0, left)
          end
        end

        # What is no job stays, and is passed over.
        def retry_all(set)
          give_up = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS
          done = passed = 0
          loop do
            jobs = @storage.scan(set, passed, STEP)
            return [done, 0] if jobs.empty?

            moved = @storage.retry_now(set, jobs.map(&:token)).count(true)
            done += moved
            passed += jobs.size - moved
            return [done, 1] if Process.clock_gettime(Process::CLOCK_MONOTONIC) > give_up
          end
        end

        def queue
          name = @request[:queue]
          return unless name && %w[pause resume].include?(act)

          was = @storage.paused.include?(name)
          changes = was == (act == "resume")
          @storage.public_send(act, name) if changes
          back = @request[:back] == "queue" ? ["/queue", { place: "queue", queue: name }] : ["/queues", {}]
          said(*back, changes ? 1 : 0, changes ? 0 : 1)
        end

        def cancel
          node, jid = %i[node jid].map { |name| @request[name] }
          return unless node && jid && act == "cancel"

          runs = @storage.work([node]).first.any? { |job| JobText.new(job.entry).jid == jid }
          Worker.cancel(jid, storage: @storage) if runs
          said("/busy", {}, runs ? 1 : 0, runs ? 0 : 1)
        end

        def process
          signal = SIGNALS[act]
          return unless signal && @request[:node]

          node = @storage.nodes.find { |one| one["identity"] == @request[:node] }
          node = nil if node && act == "quiet" && node["quiet"]
          @storage.signal(node["identity"], signal) if node
          said("/processes", {}, node ? 1 : 0, node ? 0 : 1)
        end

        def cron
          return unless @request[:name] && %w[pause resume run].include?(act)

          cron = @storage.crons.find { |one| one.name == @request[:name] }
          done = cron && (act == "run" ? run(cron) : @storage.cron_pause(cron.name, act == "pause"))
          said("/cron", {}, done ? 1 : 0, done ? 0 : 1)
        end

        def run(cron)
          Cron::Making.run(@storage, cron) ||
            raise(InvalidJobError, "#{cron.name} is not enqueued: another job holds its lock, or a middleware has stopped it")
        end
      end
      private_constant :Actions
    end
  end
end
