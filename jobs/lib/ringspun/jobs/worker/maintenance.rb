# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What any worker does for all: puts jobs whose time has come into their queues, takes over what dead nodes had in flight,
      # and forgets the oldest of the dead jobs.
      #
      # @api private
      class Maintenance
        DUE_PAGE = 100
        # Another process may add an earlier one meanwhile.
        SCHEDULER_SECONDS = 2.0
        # Two clocks are compared: a wait that ends a moment too early must not become a thousand of them.
        LEAST_SECONDS = 0.001
        RECOVER_PAGE = 100
        RECOVER_SECONDS = 2.0
        TRIM_SECONDS = 60.0
        # Characters of an entry that the log shows.
        SHOWN_LENGTH = 200

        # Every key of the storage's is looked at for it.
        EXQ_SECONDS = 30.0

        # @param deaths [Deaths] hears of each job that is taken over
        def initialize(machine, storage, config, backoff, log, deaths, random: Random)
          @machine = machine
          @storage = storage
          @config = config
          @backoff = backoff
          @log = log
          @deaths = deaths
          @random = random
          @changed = Condition.new
          @closed = false
        end

        # @return [Array<Proc>] loops, until they are closed
        def loops = [:schedule, :recover, :trim, *(:recover_exq if @config.recover_exq)].map { |name| method(name) }

        def close
          @closed = true
          @changed.broadcast
        end

        private

        def schedule
          until @closed
            moved, seconds, dead = @backoff.attempt(:due) { @storage.due(DUE_PAGE) }
            dead&.each { |entry, why| @log.event(:error, "no job: #{why}", entry: entry[0, SHOWN_LENGTH].scrub) }
            next if moved && moved + dead.size == DUE_PAGE

            nap([seconds, jittered(SCHEDULER_SECONDS)].compact.min.clamp(LEAST_SECONDS..))
          end
        end

        # Several processes started at once should not all look at once for ever.
        def recover
          let_others_beat
          until @closed
            recovered = @backoff.attempt(:recover) { @storage.recover(RECOVER_PAGE) }
            next let_others_beat unless recovered

            recovered.each { |one| tell(one) }
            nap(jittered(RECOVER_SECONDS)) unless recovered.size == RECOVER_PAGE
          end
        end

        def recover_exq
          until @closed
            recovered = @backoff.attempt(:recover_exq) { @storage.recover_exq(RECOVER_PAGE) } || []
            recovered.each { |one| tell(one) }
            nap(jittered(EXQ_SECONDS)) unless recovered.size == RECOVER_PAGE
          end
        end

        # When the storage was away for a while the leases of all nodes have run out. Whoever lives must have the time to say so
        # first, or all that runs would run again, in quarantine.
        def let_others_beat
          nil until @closed || @backoff.attempt(:recover) { @storage.time }
          nap(2 * @config.beat)
        end

        def trim
          until @closed
            @backoff.attempt(:trim_dead) { @storage.trim_dead(@config.dead_max, @config.dead_seconds) }
            nap(jittered(TRIM_SECONDS))
          end
        end

        def tell(recovered)
          job = begin
            Wire.parse(recovered.entry)
          rescue MalformedEntryError
            {}
          end
          next_step = recovered.to == :queue ? "back in its queue" : "in quarantine"
          @log.event(:warn, "taken over from a dead process: #{next_step}", jid: job["jid"], class: job["class"],
                                                                            queue: recovered.queue, node: recovered.node)
          @deaths.tell(job, :taken_over, queue: recovered.queue, node: recovered.node)
        end

        def jittered(seconds) = seconds * (1 + @random.rand)

        def nap(seconds)
          @changed.wait(timeout: seconds) if seconds.positive? && !@closed
        rescue TimeoutError
          nil
        end
      end
      private_constant :Maintenance
    end
  end
end
