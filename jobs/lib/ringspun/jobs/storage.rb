# frozen_string_literal: true

module Ringspun
  module Jobs
    # What jobs are kept in. This class says what every storage does; {Storage::Redis} and {Storage::Memory} do it, and
    # test/support/storage_suite.rb proves it of each.
    #
    # Every verb takes a batch and does for each of its members all or nothing. Each takes `connection:`, a connection of the
    # caller's; where the storage is a database that is one with a transaction open, in which it is done then. Without it the
    # storage uses one of its own. All may switch strands, and strands and threads may share a storage.
    #
    # All raise {UnavailableError} when nothing was done, and {StorageError} when the storage has refused. What can be done twice
    # without harm is tried again when its answer was lost; the others raise {UnknownOutcomeError} then.
    #
    # A *node* is who runs jobs: `host:pid:nonce`. What it has fetched is in flight: out of the queue, in a list of the node's
    # own, until it is acknowledged or has failed. A node has a lease, which it must extend; once that has run out {#recover}
    # gives what the node had in flight to others.
    #
    # Times are the storage's, never those of the caller's clock.
    #
    # @since 0.1.0
    class Storage
      # Into which a job goes that was in flight when its node died: it is run in a process that no other queue's jobs share.
      QUARANTINE = "ringspun-quarantine"

      # The sets of jobs that are in no queue.
      SETS = %i[schedule retry dead].freeze

      # What {#stats} tells, beside the queues.
      STATS = %i[processed failed enqueued scheduled retries dead in_flight nodes].freeze

      # After so many seconds without a lease and without jobs a node is forgotten.
      FORGET_SECONDS = 60

      # So long, in seconds, a push with a lock can be sent again when it had no answer, and is not stored twice.
      AGAIN_SECONDS = 60

      # So long, in seconds, dashboards show what was announced of a node.
      SHOWN_SECONDS = 60

      # A job on its way in. `at`: not before that time, seconds since the epoch; `delay`: not before so many seconds have
      # gone by. With `lock` it is refused while that unique lock is held; else it takes it, until `lock_seconds` after that time.
      Push = Struct.new(:queue, :entry, :jid, :at, :delay, :lock, :lock_seconds)

      # A job in flight.
      Fetched = Struct.new(:queue, :entry)

      # A job in flight that is done. `lock`: the unique lock that it held, which is released if its value is `jid`.
      Ack = Struct.new(:queue, :entry, :jid, :lock)

      # A job in flight that goes elsewhere: `to` is :retry or :schedule (both after `delay` seconds), :dead, or :queue (at the
      # front of the queue `new_queue`, or where it was fetched from), as `new_entry`. `lock` as in {Ack}, nil: it is kept.
      # `died`: it goes to a queue, and has ended the process in which it was isolated.
      Failure = Struct.new(:queue, :entry, :jid, :to, :new_entry, :delay, :lock, :new_queue, :died)

      # A job from the quarantine that shall run, and which run of its node's that is, an Integer.
      Begun = Struct.new(:fetched, :run)

      # What is known of a job from the quarantine, this run included: `tries`, how often a node has taken it; `isolated`, how
      # often it has been isolated; and `deaths`, how often it has ended its process then. What ended well is
      # forgotten, so all but the deaths and this run were ended by the deaths of nodes.
      Trials = Struct.new(:tries, :isolated, :deaths)

      # A job that was in flight at a dead node. `to`: :quarantine or, if it is no job at all, :queue.
      Recovered = Struct.new(:node, :queue, :entry, :to)

      # @param config [Config]
      # @return [Storage] the one that it asks for
      # @raise [ConfigError]
      # @since 0.1.0
      def self.for(config) = Redis.new(config.redis, namespace: config.namespace, milliseconds: config.milliseconds)

      # A connection for the caller alone, for one strand or thread at a time, which verbs take as `connection:`. The caller
      # closes it.
      #
      # @return [Object, nil] nil where there is none to make
      # @since 0.1.0
      def connect = missing(:connect)

      # Closes the storage's own connections. Whoever uses it again gets new ones.
      #
      # @return [nil]
      # @since 0.1.0
      def close = missing(:close)

      # @!group On their way in

      # Stores jobs, those of one queue in their order. A push with a lock whose jid was here within {AGAIN_SECONDS} counts as
      # stored, even when that job has run and its lock is free by now.
      #
      # @param pushes [Array<Push>]
      # @return [Array, nil] nil when all are stored; else a member for each: nil (stored), the jid of who holds its lock
      #   (String), or an {Error}
      # @raise [UnavailableError] nothing was sent
      # @raise [UnknownOutcomeError] there was no answer: all, some or none may be stored
      # @since 0.1.0
      def push(pushes, connection: nil) = missing(:push)

      # @!group Running them

      # Takes the oldest jobs of the first queue as long as it has some, then of the next. Paused queues are passed over.
      #
      # @param node [String]
      # @param queues [Array<String>]
      # @param max [Integer] how many at most
      # @param limits [Hash{String => Integer}] how many jobs of a queue may be in flight at all nodes together
      # @return [Array<Fetched>]
      # @raise [UnknownOutcomeError] there was no answer: see {#in_flight}
      # @since 0.1.0
      def fetch(node, queues, max, limits: {}, connection: nil) = missing(:fetch)

      # Takes the oldest job of a queue, as soon as there is one, whether the queue is paused or not, and whatever limits it has.
      #
      # @param seconds [Numeric] how long to wait; it may be less
      # @return [Fetched, nil]
      # @raise [UnknownOutcomeError] there was no answer: see {#in_flight}
      # @since 0.1.0
      def wait(node, queue, seconds, connection: nil) = missing(:wait)

      # Ends the waits of a node now, so that it need not wait until their time is over. One that has got something returns it.
      # One that has not reached the storage yet goes on; call it again until all have ended.
      #
      # @return [nil]
      # @since 0.1.0
      def rouse(node, connection: nil) = missing(:rouse)

      # What a node has. When the answer to a {#fetch} or a {#wait} was lost, it may have got jobs that nobody runs: those that
      # are in here and that it does not know. The lost command may yet come late, so look again after some seconds.
      #
      # @return [Array<Fetched>] the oldest of each queue first
      # @since 0.1.0
      def in_flight(node, connection: nil) = missing(:in_flight)

      # Counts one more run of each of some jobs from the quarantine: at first one that may share a process, and then, if the
      # job is to be isolated, that as well. Its {Ack} or {Failure} forgets them all; but a {Failure} that says `died` is counted
      # itself, and one without a jid that goes back to a queue changes nothing.
      #
      # @param runs [Array<Begun>] told again, a run counts once
      # @param isolated [Boolean]
      # @return [Array<Trials, nil>] nil: it was taken away, so do not run it
      # @raise [UnknownOutcomeError] they may be counted or not; call it again
      # @since 0.1.0
      def begin_quarantined(node, runs, isolated: false, connection: nil) = missing(:begin_quarantined)

      # Forgets jobs that are done.
      #
      # @param acks [Array<Ack>]
      # @return [Array<Boolean>] false: it was not in flight at this node any more, for it was taken away; nothing was done
      # @raise [UnknownOutcomeError] call it again; false then may also mean that it was done the first time
      # @since 0.1.0
      def ack(node, acks, connection: nil) = missing(:ack)

      # Puts jobs that are not done elsewhere.
      #
      # @param failures [Array<Failure>]
      # @return [Array<Boolean>] as for {#ack}
      # @raise [UnknownOutcomeError] as for {#ack}
      # @raise [StorageError] one of them cannot be put there and is still in flight; all others are done
      # @since 0.1.0
      def fail(node, failures, connection: nil) = missing(:fail)

      # Moves jobs whose time has come from :schedule and :retry into their queues, with the time in `enqueued_at` where that is
      # missing. What is no job goes to :dead, where it says why if it is JSON.
      #
      # @param limit [Integer] how many at most
      # @return [Array(Integer, Float, Array<Array(String, String)>)] how many were moved; the seconds until the next is due,
      #   nil: there is none; and of each that is dead now its entry, and why
      # @since 0.1.0
      def due(limit, connection: nil) = missing(:due)

      # @!group Nodes

      # Registers nodes if need be, and their leases last for so many seconds from now on. Do this before the first {#fetch}: a
      # node that has jobs and no lease counts as one whose lease has run out.
      #
      # @param nodes [Array<String>]
      # @param seconds [Numeric]
      # @return [Array<Boolean>] false: its lease had run out, so what it had in flight may be somebody else's by now
      # @since 0.1.0
      def extend(nodes, seconds, connection: nil) = missing(:extend)

      # Takes away what is in flight at nodes whose lease has run out. It goes into the quarantine; what is no job goes back to
      # its queue.
      #
      # @param limit [Integer] how many at most; call it again at once when it returns as many
      # @param forget [Numeric] seconds after which a node that has nothing any more is forgotten
      # @return [Array<Recovered>]
      # @raise [UnknownOutcomeError] it may be done or not; call it again at the usual time
      # @since 0.1.0
      def recover(limit, forget: FORGET_SECONDS, connection: nil) = missing(:recover)

      # Takes away what nodes of Exq's have in flight that have not shown themselves for some time, and puts it back in front of
      # its queues.
      #
      # @param limit [Integer] how many at most
      # @param silent [Numeric] seconds for which one must have been without a sign, beside the {SHOWN_SECONDS} that each lasts
      # @return [Array<Recovered>]
      # @raise [UnknownOutcomeError] it may be done or not; call it again at the usual time
      # @since 0.1.0
      def recover_exq(limit, silent: SHOWN_SECONDS, connection: nil) = missing(:recover_exq)

      # A node has ended well. What it still has in flight goes back in front of its queues.
      #
      # @return [nil]
      # @since 0.1.0
      def leave(node, connection: nil) = missing(:leave)

      # Shows a node to dashboards, for {SHOWN_SECONDS} from now on. What is shown decides nothing.
      #
      # @param info [Hash{String => Object}] with Sidekiq's keys: "hostname", "pid", "started_at", "tag", "concurrency", "queues",
      #   "weights", "labels", "version", "embedded"; and "quiet", "rss" (KB), "rtt_us"
      # @param work [Array<Array(String, String, String, Numeric)>] slot, queue, entry and since when it runs
      # @return [nil]
      # @since 0.1.0
      def announce(node, info, work, connection: nil) = missing(:announce)

      # Shows it no more.
      #
      # @return [nil]
      # @since 0.1.0
      def retract(node, connection: nil) = missing(:retract)

      # @return [Array<Hash{String => Object}>] what was announced, with "identity", "busy" and "beat"
      # @since 0.1.0
      def nodes(connection: nil) = missing(:nodes)

      # Leaves a message for a node.
      #
      # @return [nil]
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def signal(node, message, connection: nil) = missing(:signal)

      # Reads the messages to a node, each once.
      #
      # @return [Array<String>] the first one first
      # @raise [UnknownOutcomeError] some may be lost
      # @since 0.1.0
      def signals(node, connection: nil) = missing(:signals)

      # @!group Administration and locks

      # @return [Hash{Symbol => Integer, Hash}] {STATS}, and under :queues the size of each queue
      # @since 0.1.0
      def stats(connection: nil) = missing(:stats)

      # @param from [Integer] 0 is the one that is fetched next
      # @return [Array<String>]
      # @since 0.1.0
      def list(queue, from, count, connection: nil) = missing(:list)

      # @param set [Symbol] one of {SETS}
      # @param from [Integer] 0 is the earliest
      # @return [Array<Array(String, Float)>] entries and times
      # @since 0.1.0
      def scan(set, from, count, connection: nil) = missing(:scan)

      # Removes each entry once.
      #
      # @param place [String, Symbol] a queue, or one of {SETS}
      # @return [Array<Boolean>] whether it was there
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def remove(place, entries, connection: nil) = missing(:remove)

      # Moves entries into the queues that they name.
      #
      # @param set [Symbol] one of {SETS}
      # @return [Array<Boolean>] false: it was not there, or is no job
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def retry_now(set, entries, connection: nil) = missing(:retry_now)

      # Adds to what {#stats} tells.
      #
      # @return [nil]
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def counters(processed: 0, failed: 0, connection: nil) = missing(:counters)

      # Forgets the dead jobs that are too many, the oldest first, and those that have been dead for longer.
      #
      # @return [nil]
      # @since 0.1.0
      def trim_dead(count, seconds, connection: nil) = missing(:trim_dead)

      # {#fetch} passes over the queue from now on.
      #
      # @return [nil]
      # @since 0.1.0
      def pause(queue, connection: nil) = missing(:pause)

      # @return [nil]
      # @since 0.1.0
      def resume(queue, connection: nil) = missing(:resume)

      # @return [Array<String>] queues
      # @since 0.1.0
      def paused(connection: nil) = missing(:paused)

      # Takes a unique lock, or prolongs it if this very jid holds it.
      #
      # @return [String, nil] the jid of who else holds it
      # @since 0.1.0
      def lock(token, jid, seconds, connection: nil) = missing(:lock)

      # @return [Boolean] whether it was that jid's
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def unlock(token, jid, connection: nil) = missing(:unlock)

      # What the storage's own settings threaten jobs with, in words for a person. Where they cannot be seen there is nothing.
      #
      # @return [Array<String>]
      # @since 0.1.0
      def risks(connection: nil) = missing(:risks)

      # @return [Float] seconds since the epoch, by the storage's clock
      # @since 0.1.0
      def time(connection: nil) = missing(:time)

      # @!endgroup

      private

      def missing(verb) = raise(NotImplementedError, "#{self.class} has no #{verb}")
    end
  end
end

require_relative "storage/redis"
require_relative "storage/memory"
