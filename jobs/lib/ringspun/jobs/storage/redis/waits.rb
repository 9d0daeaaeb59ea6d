# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The verbs about waiting for jobs. The server lets a connection wait at one list only, if what comes is to be moved and
        # not just handed out (https://redis.io/docs/latest/commands/blmove/). So there is a connection for each queue. A move
        # heeds neither pauses nor limits: a job from a queue that was paused meanwhile goes back to the front of it, and queues
        # that have a limit or are paused are looked at from time to time.
        #
        # @api private
        module Waits
          # Seconds that one wait at the server lasts at most. So a process that is frozen leaves no wait behind that could take
          # a job in its name after its lease has run out.
          WAIT_SECONDS = 2
          # Seconds between looks at queues at which nobody waits.
          LOOK_SECONDS = 0.5
          # The same, where fewer jobs may come than there are queues to wait at.
          LOOK_SOON_SECONDS = 0.1
          # Seconds between tries to end a wait: the server may not have begun it yet.
          END_SECONDS = 0.01

          # (see Storage#wait_any)
          def wait_any(node, queues, seconds, max: 1, limits: {}, connection: nil)
            return [] unless max.positive?

            gate = Thread::Queue.new # closed when the waits of the node are to end
            @gates[gate] = node
            give_up = now + seconds
            until gate.closed?
              fetched, paused = look(node, queues, max, limits, connection)
              left = give_up - now
              return fetched if fetched.any? || !left.positive?

              free = queues.reject { |queue| limits[queue] || paused.include?(queue) }
              fetched = wait_at(free, queues.size, max, left, node, gate, connection)
              return with_others(fetched, node, queues, max, limits, connection) if fetched.any?
            end
            []
          ensure
            @gates.delete(gate)
          end

          # (see Storage#wait_due)
          def wait_due(seconds, connection: nil)
            use(connection, waits: true) do |one|
              !all(one.exchange([["BLPOP", key("ringspun:due"), seconds]], blocking: seconds)).first.nil?
            end
          rescue FullError # BLPOP needs no memory, but has the flag
            nap(Thread::Queue.new, [seconds, LOOK_SECONDS].min)
            false
          end

          # (see Storage#rouse)
          def rouse(node, connection: nil)
            @gates.to_a.each { |gate, who| gate.close if who == node }
            use(connection) do |one|
              clients = repeat(one, [%w[CLIENT LIST]]).first.lines.grep(/ cmd=blmove /)
              ids = clients.filter_map { |client| client[/\Aid=(\d+)/, 1] if client.include?(" name=#{waiter(node)} ") }
              unblock(one, ids)
            end
            nil
          end

          private

          # The name of a connection must not have blanks: https://redis.io/docs/latest/commands/client-setname/
          def waiter(node) = "ringspun:waits:#{node.gsub(/[^!-~]/, "_")}"

          def unblock(connection, ids)
            connection.exchange(ids.map { |id| ["CLIENT", "UNBLOCK", id] }) if ids.any?
          end

          # @return [Array(Array<Fetched>, Array<String>)] what can be fetched at once, and the queues that are paused
          def look(node, queues, max, limits, connection)
            return [[], []] if queues.empty?

            use(connection) do |one|
              lists, paused = all(one.exchange([fetch_command(node, queues, max, limits), ["SMEMBERS", key("paused")]]))
              [fetched_from(queues, lists), paused]
            end
          end

          # Nobody waits at the lists of priorities. So their jobs are taken with one that has come, and some are dealt to others
          # who wait: a fetch does that even if it fetches none. If it fails, or this process ends before, these get them after
          # {WAIT_SECONDS} at most, when the first of them looks again.
          def with_others(fetched, node, queues, max, limits, connection)
            return fetched unless @prioritized

            fetched + look(node, queues, max - fetched.size, limits, connection).first
          rescue UnavailableError, StorageError # nothing more has come
            fetched
          end

          # Waits at those of the queues that are free. Returns early, with nothing, when it is time to look again.
          def wait_at(free, queues, max, left, node, gate, connection)
            most = connection || !@unblocks ? 1 : max
            seconds = [left, WAIT_SECONDS]
            seconds << LOOK_SOON_SECONDS if free.size > most
            seconds << LOOK_SECONDS if free.size < queues
            case free.size
            when 0 then nap(gate, seconds.min)
            when 1 then wait_at_one(node, free.first, seconds.min, gate, connection)
            else wait_at_each(node, free.first(most), seconds.min, gate, connection)
            end
          end

          def nap(gate, seconds)
            gate.pop(timeout: seconds)
            []
          end

          # @yieldparam connection [Connection] on which it waits
          # @return [Array<Fetched>] one, or none
          def wait_at_one(node, queue, seconds, gate, connection)
            # Sent as a whole, and together with the move: the node and the list must be registered before the list has a job.
            register = Script.whole(Script[:register].command(@prefix, node, queue))
            move = ["BLMOVE", key("queue:#{queue}"), backup(node, queue), "RIGHT", "LEFT", seconds]
            # If the ACL refuses CLIENT SETNAME, {#rouse} cannot find this wait, which works nevertheless.
            name = ["CLIENT", "SETNAME", waiter(node)]
            _, *replies = use(connection, waits: true) do |one|
              yield one if block_given?
              one.exchange([name, register, move, ["SISMEMBER", key("paused"), queue], ["EXISTS", key("ringspun:prioritized")]],
                           blocking: seconds)
            end
            @prioritized = replies.pop == 1
            # Out of memory, the server refuses BLMOVE, which has the flag DENYOOM, although a move needs no memory. A script may
            # move. https://redis.io/docs/latest/develop/reference/errors/common/oom/
            return nap(gate, [seconds, LOOK_SECONDS].min) if replies[1].is_a?(FullError) || no_list?(replies[1])

            moved(node, queue, register, *replies, connection)
          end

          # Whether something else has the place of the queue, see {Storage#stats}. The other queues are served all the same.
          def no_list?(reply) = reply.is_a?(StorageError) && reply.message.include?("WRONGTYPE")

          # A job that has come is in flight here, even if the server has refused to register the list: nobody else could find it.
          def moved(node, queue, register, registered, entry, paused, connection)
            all([entry || registered, entry])
            return [] unless entry

            register_again(register, connection) if registered.is_a?(Error)
            fetched = Fetched.new(queue, entry, entry)
            return [fetched] unless paused == 1

            give_back(node, fetched, connection)
            []
          end

          # What cannot be given back is in flight here, so the worker must look for it.
          def give_back(node, fetched, connection)
            self.fail(node, [Failure.new(fetched.queue, fetched.token, nil, :queue)], connection: connection)
          rescue UnavailableError, StorageError => error
            raise UnknownOutcomeError, "a job of the paused queue #{fetched.queue} is in flight here: #{error.message}"
          end

          def register_again(register, connection)
            call(connection, register, again: true)
          rescue Error # this process has the job, and can run it
            nil
          end

          # Waits at several queues until one has brought a job, and ends the other waits then.
          def wait_at_each(node, queues, seconds, gate, connection)
            return wait_at_one(node, queues.first, seconds, gate, connection) if queues.size == 1

            in_run do |scope|
              waits = queues.map { |queue| Wait.new(queue) }
              ended = Condition.new
              waits.each do |wait|
                scope.spin do
                  wait.fetched = wait_at_one(node, wait.queue, seconds, gate, nil) { |one| wait.id = id_of(one) }
                rescue Error => error
                  wait.error = error
                ensure
                  ended.signal
                end
              end
              ended.wait until waits.any?(&:ended?)
              end_others(waits, ended)
              outcome(waits)
            end
          end

          # A wait at one of several queues, and how it has ended.
          Wait = Struct.new(:queue, :id, :fetched, :error) do
            def ended? = fetched || error
          end
          private_constant :Wait

          def id_of(connection) = connection.id.tap { |id| @unblocks = false unless id }

          # Strands wait in the caller's run. A thread that has none begins one.
          def in_run(&block)
            return Ringspun.scope(&block) if Fiber.current_scheduler.is_a?(Scheduler)

            Ringspun.run { Ringspun.scope(&block) }
          end

          # Again and again, for a wait that is still on its way to the server cannot be ended yet.
          def end_others(waits, ended)
            until (rest = waits.reject(&:ended?)).empty?
              told = tell_to_end(rest)
              begin
                ended.wait(timeout: told ? END_SECONDS : LOOK_SOON_SECONDS) unless waits.all?(&:ended?)
              rescue TimeoutError
                nil
              end
            end
          end

          # @return [Boolean] false: that takes a connection, and there is none; but each wait ends by itself, too
          def tell_to_end(waits)
            use(nil) { |one| unblock(one, waits.filter_map(&:id)) }
            true
          rescue Error
            false
          end

          # What a wait without an answer has brought is found where it is in flight, as after a fetch without one.
          def outcome(waits)
            errors = waits.filter_map(&:error)
            fetched = waits.flat_map { |wait| wait.fetched || [] }
            raise errors.find { |error| error.is_a?(UnknownOutcomeError) } || errors.first if errors.any? &&
              (fetched.empty? || errors.any?(UnknownOutcomeError))

            fetched
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
        private_constant :Waits
      end
    end
  end
end
