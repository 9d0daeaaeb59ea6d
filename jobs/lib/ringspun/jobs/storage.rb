# frozen_string_literal: true

module Ringspun
  module Jobs
    # What jobs are kept in. This class says what every storage does; {Storage::Redis} and {Storage::Memory} do it, and
    # test/support/storage_suite.rb proves it of each.
    #
    # Every verb takes a batch and does for each of its members all or nothing. Each takes `connection:`, a connection of the
    # caller's; where the storage is a database that is one with a transaction open, in which it is done then. Without it the
    # storage uses one of its own. All may switch strands.
    #
    # A *node* is who runs jobs: `host:pid:nonce`. What it has fetched is in flight: out of the queue, in a list of the node's
    # own, until it is acknowledged or has failed. A node has a lease, which it must extend; once that has run out {#recover}
    # gives what the node had in flight to others.
    #
    # Times are the storage's, never those of the caller's clock.
    class Storage
      # Into which a job goes that was in flight when its node died: it is run alone, in a process of its own.
      QUARANTINE = "ringspun-quarantine"

      # The sets of jobs that are in no queue.
      SETS = %i[schedule retry dead].freeze

      # What {#stats} tells, beside the queues.
      STATS = %i[processed failed enqueued scheduled retries dead in_flight nodes].freeze

      # After so many seconds without a lease and without jobs a node is forgotten.
      FORGET_SECONDS = 60

      # So long, in seconds, dashboards show what was announced of a node.
      SHOWN_SECONDS = 60

      # A job on its way in. `at`: not before that time, seconds since the epoch; `delay`: not before so many seconds have
      # gone by. With `lock` it is refused while that unique lock is held; else it takes it, for `lock_seconds`.
      Push = Struct.new(:queue, :entry, :jid, :at, :delay, :lock, :lock_seconds)

      # A job in flight.
      Fetched = Struct.new(:queue, :entry)

      # A job in flight that is done. `lock`: the unique lock that it held, which is released if its value is `jid`.
      Ack = Struct.new(:queue, :entry, :jid, :lock)

      # A job in flight that goes elsewhere: `to` is :retry or :schedule (both after `delay` seconds), :dead, or :queue (at the
      # front of the queue `new_queue`, or where it was fetched from), as `new_entry`. `lock` as in {Ack}, nil: it is kept.
      Failure = Struct.new(:queue, :entry, :jid, :to, :new_entry, :delay, :lock, :new_queue)

      # A job that was in flight at a dead node. `to`: :quarantine, or :dead after as many deaths alone as it is allowed, or, if
      # it is no job at all, :queue.
      Recovered = Struct.new(:node, :queue, :entry, :to)

      # @param config [Config]
      # @return [Storage] the one that it asks for
      # @raise [ConfigError]
      # @since 0.1.0
      def self.for(config) = Redis.new(config.redis, namespace: config.namespace, milliseconds: config.milliseconds)

      # connect -> a connection for the caller alone, which verbs take as `connection:`; the caller closes it. nil where there is
      # none to make.
      #
      # All verbs raise UnavailableError (nothing was done) and StorageError (it has refused), and those that must not be done
      # twice UnknownOutcomeError; the others are tried again then. What that means for a verb is said with it.

      # --- on their way in ---

      # push(pushes, connection: nil) -> nil when all are stored; else an Array with a member for each: nil (stored), the jid of
      # who holds its lock (String), or an Error of ours. A push with a lock that this very jid holds counts as stored: it has
      # been here before.

      # --- running them ---

      # fetch(node, queues, max, limits: {}, connection: nil) -> Array<Fetched>, at most `max`, of the first queue as long as
      # it has some, then of the next. Paused queues are passed over. `limits`: queue => how many may be in flight at all
      # nodes together.
      #
      # wait(node, queue, seconds, connection: nil) -> Fetched or nil: the next one of that queue, as soon as there is one.
      # Looks neither at pauses nor limits, and may return before the time is over.
      #
      # in_flight(node, connection: nil) -> Array<Fetched>: all that the node has. When the answer to a fetch or a wait was lost
      # (UnknownOutcomeError) it may have got jobs that nobody runs: those that are in here and that it does not know. The lost
      # command may yet come late, so look again after some seconds.
      #
      # begin_alone(node, fetched, connection: nil) -> Integer: counts one more run of a job from the quarantine, which its
      # Ack or Failure forgets again; what is returned is how many runs, this one included, have begun and not ended. 0: it was
      # taken away; do not run it.
      #
      # ack(node, acks, connection: nil), fail(node, failures, connection: nil) -> Array<Boolean>, one for each. false: it was
      # not in flight at this node any more, for it has been taken away; then nothing was done. After an UnknownOutcomeError
      # they may be called again, and false then may also mean that it was done the first time.
      #
      # due(limit, connection: nil) -> [how many jobs were moved from schedule and retry into their queues, seconds until the
      # next is due, or nil]. What is no job goes to the dead ones.

      # --- nodes ---

      # extend(nodes, seconds, connection: nil) -> Array<Boolean>: registers them if need be, and their leases last for so
      # many seconds from now on. false: it had a lease that ran out, so what it had in flight may be somebody else's by now. Do
      # this before the first fetch: a node that has fetched and has no lease counts as one whose lease has run out.
      #
      # recover(limit, deaths: 3, forget: FORGET_SECONDS, connection: nil) -> Array<Recovered>, at most `limit`: of nodes whose
      # lease has run out. Call it again at once when it returns as many.
      #
      # leave(node, connection: nil): the node has ended well. What it still had in flight goes back in front of its queues.
      #
      # announce(node, info, work, connection: nil), retract(node, connection: nil): what dashboards show of it. `info`: a Hash;
      # `work`: an Array of [slot, queue, entry, began at]. `info` has Sidekiq's keys, all Strings: "hostname", "pid",
      # "started_at", "tag", "concurrency", "queues", "weights", "labels", "version", "embedded"; and "quiet", "rss" (KB),
      # "rtt_us". Call it every few seconds; after {SHOWN_SECONDS} without it the node is not shown any more.
      #
      # signal(node, message, connection: nil), signals(node, connection: nil) -> Array<String>: messages to a node, the first
      # one first, each read once.

      # --- looking and mending; all take connection: ---

      # stats -> Hash of Integers: processed, failed, enqueued, scheduled, retries, dead, in_flight, nodes; and queues: name
      # => size.
      # nodes -> Array<Hash>: what was announced, with "identity" and "busy".
      # list(queue, from, count) -> Array<String>, the next one to be fetched first.
      # scan(set, from, count) -> Array<[String, Float]> of :schedule, :retry or :dead, the earliest first.
      # remove(place, entries) -> Array<Boolean>; a place is a queue's name or one of those Symbols.
      # retry_now(set, entries) -> Array<Boolean>: into their queues. false: it was not there, or is no job.
      # counters(processed: 0, failed: 0): adds to what stats tells.
      # trim_dead(count, seconds): forgets those that are too many, and those that have been there for longer.
      # pause(queue), resume(queue), paused -> Array<String>.
      # lock(token, jid, seconds) -> nil, or the jid of who holds it; unlock(token, jid) -> Boolean: whether it was that
      # jid's. A lock that this very jid holds is prolonged.
      # time -> Float
      # close: of its connections.
    end
  end
end

require_relative "storage/redis"
require_relative "storage/memory"
