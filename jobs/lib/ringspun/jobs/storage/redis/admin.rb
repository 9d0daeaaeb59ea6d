# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The verbs for administration: they look into the storage, and change what is there.
        #
        # @api private
        module Admin
          # The most jobs that are cleared at a time, for others wait meanwhile.
          CLEARED = 1000

          # (see Storage#queues)
          def queues(connection: nil) = call(connection, ["SMEMBERS", key("queues")], again: true)

          # (see Storage#stats)
          def stats(connection: nil)
            *numbers, queues, unreadable = call(connection, Script[:stats].command(@prefix), again: true)
            { **STATS.zip(numbers).to_h, queues: queues.each_slice(2).sort.to_h, unreadable: unreadable.sort }
          end

          # (see Storage#list)
          def list(queue, from, count, from_end: false, connection: nil)
            return [] unless count.positive?

            call(connection, Script[:list].command(@prefix, queue_named(queue), from, count, from_end ? 1 : 0), again: true)
              .map { |entry| Stored.new(entry, entry) }
          end

          # (see Storage#scan)
          def scan(set, from, count, from_end: false, connection: nil)
            return [] unless count.positive?

            way = from_end ? ["REV"] : []
            call(connection, ["ZRANGE", set_key(set), from, from + count - 1, *way, "WITHSCORES"], again: true)
              .map { |entry, at| Stored.new(entry, entry, at) }
          end

          # (see Storage#history)
          def history(jid, connection: nil)
            call(connection, ["LRANGE", key("ringspun:history:#{jid}"), 0, -1], again: true).filter_map { |text| event_of(text) }
          end

          # (see Storage#results)
          def results(jids, connection: nil)
            jids.empty? ? [] : call(connection, ["MGET", *jids.map { |jid| key("ringspun:result:#{jid}") }], again: true)
          end

          # (see Storage#remove)
          def remove(place, tokens, connection: nil)
            kind, name = kind_and_name(place)
            in_parts(tokens) { |some| call(connection, Script[:remove].command(@prefix, kind, name, *some)) }
          end

          # (see Storage#clear)
          def clear(place, connection: nil)
            kind, name = kind_and_name(place)
            cleared = 0
            rest = Float::INFINITY # then no more than there were at first: others may come as fast as these go
            while rest.positive?
              command = Script[:clear].command(@prefix, kind, name, [rest, CLEARED].min)
              done, left = after_a_part(cleared.positive?) { call(connection, command) }
              cleared += done
              rest = [rest - done, left].min
            end
            cleared
          end

          # (see Storage#kill)
          def kill(place, tokens, connection: nil)
            raise ArgumentError, "what is dead cannot be killed" if place == :dead

            kind, name = kind_and_name(place)
            in_parts(tokens) { |some| call(connection, Script[:kill].command(@prefix, kind, name, @history, *some)) }
          end

          # (see Storage#retry_now)
          def retry_now(set, tokens, connection: nil)
            set_key(set)
            command = Script[:retry_now].command(@prefix, @milliseconds ? 1 : 0, set.name, @history, *tokens)
            call(connection, command).map { |moved| moved == 1 }
          end

          # (see Storage#move)
          def move(place, moves, to, connection: nil)
            kind, name = kind_and_name(place)
            return moves.map { false } if place == to

            in_parts(moves) do |some|
              entries = some.flat_map { |move| [move.token, move.entry || move.token] }
              call(connection, Script[:move].command(@prefix, kind, name, to, @history, *entries))
            end
          end

          # (see Storage#restore)
          def restore(place, jobs, connection: nil)
            if place.is_a?(Symbol)
              commands = jobs.map { |job| ["ZADD", set_key(place), "NX", job.at, job.entry] }
              return commands.empty? ? [] : use(connection) { |one| all(one.exchange(commands)) }.map { |added| added == 1 }
            end

            pushes = jobs.map do |job| # in the quarantine all have the same priority
              Push.new(queue: place, entry: job.entry, priority: (priority_of(job.entry) unless place == QUARANTINE))
            end
            refused = push(pushes, connection: connection)&.find { |answer| answer }
            refused ? raise(refused) : jobs.map { true }
          end

          # (see Storage#counters)
          def counters(processed: 0, failed: 0, twice: 0, connection: nil)
            call(connection, Script[:count].command(@prefix, processed, failed, twice))
            nil
          end

          # (see Storage#trim_dead)
          def trim_dead(count, seconds, connection: nil)
            call(connection, Script[:trim].command(@prefix, count, seconds), again: true)
            nil
          end

          # (see Storage#pause)
          def pause(queue, connection: nil)
            call(connection, ["SADD", key("paused"), queue_named(queue)], again: true)
            nil
          end

          # (see Storage#resume)
          def resume(queue, connection: nil)
            call(connection, ["SREM", key("paused"), queue_named(queue)], again: true)
            nil
          end

          # (see Storage#paused)
          def paused(connection: nil) = call(connection, ["SMEMBERS", key("paused")], again: true).sort

          # (see Storage#risks)
          def risks(connection: nil)
            policy = call(connection, %w[INFO memory], again: true)[/^maxmemory_policy:(\S+)/, 1]
            return [] if [nil, "noeviction"].include?(policy)

            # No job expires, so a volatile policy evicts other keys: https://redis.io/docs/latest/develop/reference/eviction/
            what = policy.start_with?("volatile") ? "leases, so that living workers are taken for dead, and unique locks" : "jobs"
            ["Redis deletes #{what} when its memory is full: its maxmemory-policy is #{policy}; set it to noeviction"]
          rescue StorageError # the ACL refuses INFO
            []
          end

          # (see Storage#check)
          def check(connection: nil)
            stats(connection: connection)[:unreadable].map do |queue|
              "the queue #{queue} cannot be read: #{key("queue:#{queue}")} is no list; rename what is there"
            end
          end

          # (see Storage#time)
          def time(connection: nil)
            seconds, microseconds = call(connection, ["TIME"], again: true)
            seconds.to_i + (microseconds.to_i / 1_000_000.0)
          end

          private

          # A script that has compared too many entries answers for the first ones only; so there may be a next time, for about as
          # many as it has done.
          #
          # @yieldparam some [Array]
          # @return [Array<Boolean>] for each member whether it was there
          def in_parts(all)
            answers = []
            count = all.size
            while answers.size < all.size
              more = after_a_part(answers.any?) { yield all[answers.size, count] }
              answers.concat(more)
              count = more.size * 2
            end
            answers.map { |answer| answer == 1 }
          end

          # What was done before is done.
          def after_a_part(done)
            yield
          rescue UnavailableError => error
            raise unless done

            raise UnknownOutcomeError, "a part is done: #{error.message}"
          end

          # @return [Event, nil] nil: somebody else has put it there
          def event_of(text)
            at, kind, *details = JSON.parse(text).values_at("at", "kind", "node", "error_class", "error_message")
            Event.new(at, kind.to_sym, *details) if at.is_a?(Numeric) && kind.is_a?(String)
          rescue JSON::ParserError, TypeError, NoMethodError
            nil
          end

          def priority_of(entry)
            Wire.read(entry)&.then { |job| Wire.priority(job) } if entry.b.include?(Wire::PRIORITY)
          end

          def kind_and_name(place)
            return ["queue", place] if place.is_a?(String)

            set_key(place)
            ["set", place.name]
          end

          def set_key(set)
            raise ArgumentError, "#{set.inspect} is none of #{SETS.map(&:inspect).join(", ")}" unless SETS.include?(set)

            key(set.name)
          end
        end
        private_constant :Admin
      end
    end
  end
end
