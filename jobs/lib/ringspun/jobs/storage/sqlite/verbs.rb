# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # The verbs that are one step of the tables.
        #
        # @api private
        module Verbs
          # (see Storage#rouse)
          def rouse(node, connection: nil) = engine.bells.end_waits(node)

          # (see Storage#in_flight)
          def in_flight(node, connection: nil) = read(connection) { |tables| tables.in_flight(node) }

          # (see Storage#begin_quarantined)
          def begin_quarantined(node, runs, isolated: false, connection: nil)
            return [] if runs.empty?

            write(connection) { |tables| tables.begin_quarantined(node, runs, isolated) }
          end

          # (see Storage#ack)
          def ack(node, acks, connection: nil) = acks.empty? ? [] : finish(connection) { |tables| tables.ack(node, acks) }

          # (see Storage#fail)
          def fail(node, failures, connection: nil)
            failures.empty? ? [] : finish(connection) { |tables| tables.fail(node, failures) }
          end

          # (see Storage#due)
          def due(limit, by: nil, connection: nil) = write(connection) { |tables| tables.due(limit, by) }

          # (see Storage#extend)
          def extend(nodes, seconds, connection: nil)
            return [] if nodes.empty?

            write(connection, durable: false) { |tables| tables.extend_leases(nodes, seconds) }
          end

          # (see Storage#recover)
          def recover(limit, forget: FORGET_SECONDS, hold: HOLD_SECONDS, connection: nil)
            write(connection) { |tables| tables.recover(limit, forget, hold) }
          end

          # (see Storage#recover_exq)
          def recover_exq(limit, silent: SHOWN_SECONDS, connection: nil) = []

          # (see Storage#losses)
          def losses(node, connection: nil) = read(connection) { |tables| tables.losses(node) }

          # (see Storage#leave)
          def leave(node, connection: nil)
            refuse(connection)
            write(nil) { |tables| tables.leave(node) }
          end

          # (see Storage#announce)
          def announce(node, info, work, connection: nil)
            write(connection, durable: false) { |tables| tables.announce(node, info, work) }
          end

          # (see Storage#retract)
          def retract(node, connection: nil) = write(connection, durable: false) { |tables| tables.retract(node) }

          # (see Storage#nodes)
          def nodes(connection: nil) = read(connection, &:announced)

          # (see Storage#work)
          def work(nodes, connection: nil) = read(connection) { |tables| tables.work(nodes) }

          # (see Storage#measure)
          def measure(measures, connection: nil)
            write(connection, durable: false) { |tables| tables.measure(measures) } if measures.any?
          end

          # (see Storage#measured)
          def measured(connection: nil) = read(connection, &:measured)

          # (see Storage#measured_minutes)
          def measured_minutes(class_name, count = MINUTES_MAX, connection: nil)
            read(connection) { |tables| tables.measured_minutes(class_name, count) }
          end

          # (see Storage#signal)
          def signal(node, message, connection: nil) = write(connection) { |tables| tables.signal(node, message) }

          # (see Storage#signals)
          def signals(node, connection: nil)
            return [] unless read(connection) { |tables| tables.signals?(node) }

            write(connection) { |tables| tables.signals(node) }
          end

          # (see Storage#queues)
          def queues(connection: nil) = read(connection, &:queues)

          # (see Storage#stats)
          def stats(connection: nil) = read(connection, &:stats)

          # (see Storage#list)
          def list(queue, from, count, from_end: false, connection: nil)
            name = queue_named(queue)
            read(connection) { |tables| tables.list_jobs(name, from, count, from_end: from_end) }
          end

          # (see Storage#scan)
          def scan(set, from, count, from_end: false, connection: nil)
            read(connection) { |tables| tables.scan(set, from, count, from_end: from_end) }
          end

          # (see Storage#history)
          def history(jid, connection: nil) = read(connection) { |tables| tables.history(jid) }

          # (see Storage#results)
          def results(jids, connection: nil) = read(connection) { |tables| tables.results(jids) }

          # (see Storage#done)
          def done(from, count, job_class: nil, queue: nil, from_end: false, connection: nil)
            name = job_class.is_a?(Module) ? job_class.name : job_class
            read(connection) { |tables| tables.done(from, count, name, queue, from_end) }
          end

          # (see Storage#find_done)
          def find_done(token, connection: nil) = read(connection) { |tables| tables.find_done(token) }

          # (see Storage#remove)
          def remove(place, tokens, connection: nil) = write(connection) { |tables| tables.remove(place, tokens) }

          # (see Storage#kill)
          def kill(place, tokens, connection: nil)
            raise ArgumentError, "what is dead cannot be killed" if place == :dead

            write(connection) { |tables| tables.kill(place, tokens) }
          end

          # (see Storage#retry_now)
          def retry_now(set, tokens, connection: nil) = write(connection) { |tables| tables.retry_now(set, tokens) }

          # (see Storage#move)
          def move(place, moves, to, connection: nil) = write(connection) { |tables| tables.move(place, moves, to) }

          # (see Storage#restore)
          def restore(place, jobs, connection: nil) = write(connection) { |tables| tables.restore(place, jobs) }

          # (see Storage#counters)
          def counters(processed: 0, failed: 0, twice: 0, connection: nil)
            write(connection, durable: false) { |tables| tables.count(processed, failed, twice) }
          end

          # (see Storage#trim_dead)
          def trim_dead(count, seconds, connection: nil) = write(connection) { |tables| tables.trim_dead(count, seconds) }

          # (see Storage#pause)
          def pause(queue, connection: nil)
            name = queue_named(queue)
            write(connection) { |tables| tables.pause(name, true) }
          end

          # (see Storage#resume)
          def resume(queue, connection: nil)
            name = queue_named(queue)
            write(connection) { |tables| tables.pause(name, false) }
          end

          # (see Storage#paused)
          def paused(connection: nil) = read(connection, &:paused)

          # (see Storage#lock)
          def lock(token, jid, seconds, connection: nil) = write(connection) { |tables| tables.lock(token, jid, seconds) }

          # (see Storage#unlock)
          def unlock(token, jid, connection: nil) = write(connection) { |tables| tables.release(token, jid) }

          # (see Storage#cron_define)
          def cron_define(source, crons, fresh: true, stale: CRON_STALE_SECONDS, connection: nil)
            write(connection, durable: fresh) { |tables| tables.cron_define(source, crons, fresh, stale) }
          end

          # (see Storage#cron_push)
          def cron_push(name, tick, push, connection: nil) = write(connection) { |tables| tables.cron_push(name, tick, push) }

          # (see Storage#crons)
          def crons(connection: nil) = read(connection, &:crons)

          # (see Storage#cron_pause)
          def cron_pause(name, paused, connection: nil) = write(connection) { |tables| tables.cron_pause(name, paused) }

          # (see Storage#risks)
          def risks(connection: nil) = []

          # (see Storage#version)
          def version(connection: nil)
            engine.version(connection)
          end

          # (see Storage#migrate)
          def migrate(connection: nil)
            before = version(connection: connection)
            write(connection, &:count_anew)
            [before.known - before.there, 0].max
          end

          # (see Storage#check)
          def check(connection: nil)
            read(connection, &:check_all)
          rescue DamagedError => error # SQLite could not look any further
            ["#{Tables::Check::DAMAGED}: #{error.message}"]
          end

          # (see Storage#time)
          def time(connection: nil) = Process.clock_gettime(Process::CLOCK_REALTIME)
        end
        private_constant :Verbs
      end
    end
  end
end
