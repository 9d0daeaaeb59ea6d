# frozen_string_literal: true

module Ringspun
  module Jobs
    # The storage of jobs. This class is the contract of every storage. Its subclasses fulfil it, and
    # test/support/storage_suite.rb tests each of them.
    #
    # Every verb takes a batch, and does all or nothing for each of its members. Each takes `connection:`, a connection of the
    # caller's; in a storage that is a database, its open transaction then includes the verb. Without it the storage uses a
    # connection of its own. All verbs may switch strands, and strands and threads may share a storage. A `connection:` that is
    # none of this storage's raises {UsageError}, which says what to do. On a connection of the caller's {#ack} and {#fail} need
    # an open transaction; a job that was taken away is an answer of theirs as ever, at which the caller rolls back.
    #
    # All verbs raise {UnavailableError} when nothing was done, and {StorageError} when the storage has refused. When an answer
    # was lost, a verb that can be done twice without harm is tried again; the others raise {UnknownOutcomeError}.
    #
    # A *token* names a stored job: a String that means something to its storage only. A job keeps its token as long as its entry
    # stays as it is, in whichever place. Jobs with the same entry may have the same token; a verb then takes one of them.
    #
    # A *node* runs jobs; its name is `host:pid:nonce`. A job that it has fetched is in flight: out of the queue, in a list of the
    # node's own, until it is acknowledged or has failed. A node has a lease, which it must extend; when the lease has run out,
    # {#recover} gives what the node had in flight to others.
    #
    # Times are by the storage's clock, never by the caller's.
    #
    # @since 0.1.0
    class Storage
      # The queue for jobs that were in flight when their node died: they run in processes apart from the jobs of other queues.
      QUARANTINE = Wire::QUARANTINE

      # The sets for jobs that are in no queue.
      SETS = %i[schedule retry dead].freeze

      # What {#stats} returns, beside the queues. `twice`: how many runs were of jobs that were taken away from a living process,
      # for its lease had run out, so that these jobs ran again elsewhere.
      STATS = %i[processed failed enqueued scheduled retries dead in_flight nodes twice].freeze

      # Seconds between two calls of {#due}, at most, for other clients wake nobody.
      POLL_SECONDS = 4

      # Seconds without a lease and without jobs after which a node is forgotten.
      FORGET_SECONDS = 60

      # Seconds for which a job that waits in the quarantine counts for the limit of its queue, and a run at a node whose lease
      # has run out as well; unless {#recover} says otherwise.
      HOLD_SECONDS = 36

      # An outage, see {#extend}, is no shorter: to fall behind for a moment is none.
      OUTAGE_SECONDS = 1.0

      # Seconds for which a push with a lock can be sent again after a lost answer, and is not stored twice.
      AGAIN_SECONDS = 60

      # The most seconds for which a result is kept, a year, whatever an {Ack} says.
      RESULT_SECONDS_MAX = 366 * 86_400

      # Seconds for which a job has a history, unless the settings say otherwise, and the most events in one, the last ones.
      HISTORY_SECONDS = 86_400
      EVENTS_MAX = 25

      # Seconds for which dashboards show what was announced of a node.
      SHOWN_SECONDS = 60

      # A job to be stored. It is not due before the time `at`, seconds since the epoch, or before `delay` seconds from now. With
      # `lock` it is refused while another job holds that unique lock; else it holds it until `lock_seconds` after it is due.
      # `priority`, an Integer, is that of the entry: see {#fetch}; nil means 0.
      Push = Struct.new(:queue, :entry, :jid, :at, :delay, :lock, :lock_seconds, :priority)

      # A job in flight, and its token.
      Fetched = Struct.new(:queue, :entry, :token)

      # A job in a queue or in a set, and its token. `at`, in a set: seconds since the epoch, when it is due or has died.
      Stored = Struct.new(:token, :entry, :at)

      # Something that has happened to a job: see {#history}. `kind`:
      #
      # - :retry, :dead or :dropped: it failed, and is tried again, is dead, or is not kept
      # - :taken_over: the node that had it is gone; :died: it has ended the process in which it ran isolated
      # - :snoozed, :cancelled, :returned (its worker ended, and it is back in its queue), :by_hand ({#retry_now}, {#move}),
      #   :killed (by {#kill})
      # - :done, which only a job has to which something else has happened before
      #
      # `at`: seconds since the epoch; `node`: where it ran.
      Event = Struct.new(:at, :kind, :node, :error_class, :error_message)

      # A job in flight that is done. `lock`: the unique lock that it held, which is released if its value is `jid`. `pushes`, an
      # Array of {Push}: jobs that are stored in the same step, so that either both happen or neither. `result`: JSON text that is
      # kept in that step too, for `keep_seconds`; nil of these: nothing is kept. `event`, an {Event} without time and node,
      # goes into the job's history. With `ran`, a {Ran}, a storage that can keeps the job among those that are done, see {#done}.
      Ack = Struct.new(:queue, :token, :jid, :lock, :pushes, :result, :keep_seconds, :event, :ran)

      # A job in flight that goes elsewhere, as `new_entry`, or as it is without that. `to` is :retry or :schedule (both after
      # `delay` seconds), :dead, or :queue (to the front of the queue `new_queue`, or of the one it was fetched from). `lock` and
      # `event` as in {Ack}; nil: the lock is kept. `died`: it goes to a queue after it has ended the process in which it was
      # isolated.
      Failure = Struct.new(:queue, :token, :jid, :to, :new_entry, :delay, :lock, :new_queue, :died, :event)

      # A job from the quarantine that begins to run, and the number of that run, an Integer that its node gives only once.
      Begun = Struct.new(:fetched, :run)

      # The counts of a job from the quarantine, this run included: `tries`, how often a node has taken it; `isolated`, how often
      # it was isolated; `deaths`, how often it has ended its process then. A job that has ended is forgotten. So all other runs
      # were ended by the deaths of their nodes.
      Trials = Struct.new(:tries, :isolated, :deaths)

      # A job that was in flight at a dead node, and where it went. `to`: :quarantine, or :queue for an entry that is no job.
      Recovered = Struct.new(:node, :queue, :entry, :to)

      # A job that was found. `place`: :queue, :in_flight, or one of {SETS}. `queue`: the one where it waits or was fetched.
      # `node`: the one that has it in flight. `token` is valid where it was found. `at` as in {Stored}.
      Found = Struct.new(:place, :queue, :node, :token, :entry, :at)

      # A job that runs, as its node has announced it: `slot`, the name of the run at its node; `entry`, shortened if it was too
      # long to be shown; `began_at`, seconds since the epoch by the node's clock.
      Running = Struct.new(:node, :slot, :queue, :entry, :began_at)

      # What a part of a search has found, how many entries it has looked at, and the `cursor` with which to go on; nil: that was
      # the last part.
      Page = Struct.new(:found, :looked, :cursor)

      # How the jobs of one class that have ended in one minute went. `minute`: since the epoch, by the clock of the node that has
      # run them. `processed`: all of them, of which `failed` have failed; `milliseconds`: how long the others have taken in all,
      # and `histogram`, how many of them below each of {LIMITS_MS}: a Hash of indices and counts, with one more for the rest.
      Measure = Struct.new(:minute, :class_name, :processed, :failed, :milliseconds, :histogram) do
        # @param share [Float] 0.95 for the 95th percentile
        # @return [Integer, nil] one of {LIMITS_MS}, below which this share of those that have not failed were; nil: there are
        #   none, or it is above all of them
        # @since 0.1.0
        def below(share)
          left = (histogram.each_value.sum * share).ceil
          index = (0..LIMITS_MS.size).find { |each| (left -= histogram.fetch(each, 0)) <= 0 } if left.positive?
          index && LIMITS_MS[index]
        end
      end

      # The upper limits of the histogram of a {Measure}, as Sidekiq's page draws them, see
      # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/metrics/shared.rb
      LIMITS_MS = [20, 30, 45, 65, 100, 150, 225, 335, 500, 750, 1100, 1700, 2500, 3800, 5750, 8500, 13_000, 20_000, 30_000,
                   45_000, 65_000, 100_000, 150_000, 225_000, 335_000].freeze

      # The most classes that have totals in {#measured}; all others have theirs together, by this name.
      CLASSES_MAX = 500
      OTHERS = "(others)"

      # A job that goes elsewhere, as `entry`, or as it is without that.
      Move = Struct.new(:token, :entry)

      # Makes a connection for the caller alone, which verbs take as `connection:`. One strand or thread may use it at a time. The
      # caller closes it.
      #
      # @return [Object, nil] nil in a storage without connections
      # @since 0.1.0
      def connect = missing(:connect)

      # @return [Boolean] whether several processes can share it
      # @since 0.1.0
      def shared? = missing(:shared?)

      # Says for people where it is, so that they see when two processes look at different places. Without a password.
      #
      # @return [String] in the form of the setting, where there is one
      # @since 0.1.0
      def identity = self.class.name.to_s

      # Closes the storage's own connections. It makes new ones when it is used again.
      #
      # @return [nil]
      # @since 0.1.0
      def close = missing(:close)

      # @!group On their way in

      # Stores jobs, those of one queue in their order. A push with a lock whose jid was stored within the last {AGAIN_SECONDS}
      # counts as stored, even if that job has run and its lock is free by now.
      #
      # @param pushes [Array<Push>]
      # @return [Array, nil] nil when all are stored; else a member for each: nil (stored), the jid that holds its lock (String),
      #   or an {Error}
      # @raise [UnavailableError] nothing was sent
      # @raise [UnknownOutcomeError] there was no answer: all, some or none may be stored
      # @since 0.1.0
      def push(pushes, connection: nil) = missing(:push)

      # @!group Running them

      # Takes the oldest jobs of the first queue as long as it has some, then of the next, and so on. Passes over paused queues.
      # The jobs of a queue with the smallest priority come first, and of these the oldest. A job that goes back in front of a
      # queue goes in front of those with its priority.
      #
      # @param node [String]
      # @param queues [Array<String>]
      # @param max [Integer] how many at most
      # @param limits [Hash{String => Integer}] how many jobs of a queue may be in flight at all nodes together. Those that have
      #   come to the quarantine count as well, see {#recover}. A node without a lease gets none of a queue with a limit.
      # @return [Array<Fetched>]
      # @raise [UnknownOutcomeError] there was no answer: see {#in_flight}
      # @since 0.1.0
      def fetch(node, queues, max, limits: {}, connection: nil) = missing(:fetch)

      # Takes what {#fetch} would take, as soon as there is some. What is held back when the wait begins, by a pause or a limit,
      # may come some tenths of a second after it is free; so may jobs where `max` is less than there are queues, and where
      # the caller's connection serves several queues.
      #
      # @param node (see #fetch)
      # @param queues (see #fetch)
      # @param seconds [Numeric] how long to wait at most
      # @param max (see #fetch)
      # @param limits (see #fetch)
      # @return [Array<Fetched>] empty: none came in time, or {#rouse} has ended the wait
      # @raise [UnknownOutcomeError] there was no answer: see {#in_flight}
      # @since 0.1.0
      def wait_any(node, queues, seconds, max: 1, limits: {}, connection: nil) = missing(:wait_any)

      # Ends the waits of a node now. A wait that has got a job returns it. A wait that has not reached the storage yet goes on;
      # call this again until all have ended.
      #
      # @return [nil]
      # @since 0.1.0
      def rouse(node, connection: nil) = missing(:rouse)

      # The jobs that a node has in flight. When the answer to a {#fetch} or a {#wait_any} was lost, the node may have jobs here
      # that it does not know and does not run. The command may also arrive late, so look again after some seconds.
      #
      # @return [Array<Fetched>] the oldest of each queue first
      # @since 0.1.0
      def in_flight(node, connection: nil) = missing(:in_flight)

      # Counts a run of each of some jobs from the quarantine: first as a run that may share a process, and then, if the job is to
      # be isolated, as an isolated one too. The job's {Ack} or {Failure} forgets the counts; but a {Failure} with `died` adds to
      # them, and one without a jid that goes back to a queue keeps them.
      #
      # @param runs [Array<Begun>] a run that is given again counts once
      # @param isolated [Boolean]
      # @return [Array<Trials, nil, Symbol>] nil: the job was taken away, so do not run it; :later: the limit of its queue does
      #   not allow it yet, so call it again for that job, which is the next
      # @raise [UnknownOutcomeError] they may be counted or not; call it again
      # @since 0.1.0
      def begin_quarantined(node, runs, isolated: false, connection: nil) = missing(:begin_quarantined)

      # Forgets jobs that are done, and stores those that follow them, each as {#push} does.
      #
      # @param acks [Array<Ack>]
      # @return [Array<Boolean>] false: the job was not in flight at this node any more, for it was taken away; nothing was done
      # @raise [UnknownOutcomeError] call it again; false then may also mean that it was done the first time
      # @since 0.1.0
      def ack(node, acks, connection: nil) = missing(:ack)

      # Moves jobs that are not done from where they are in flight to where they go.
      #
      # @param failures [Array<Failure>]
      # @return [Array<Boolean>] as for {#ack}
      # @raise [UnknownOutcomeError] as for {#ack}
      # @raise [StorageError] one of them cannot be moved and is still in flight; all others are moved
      # @since 0.1.0
      def fail(node, failures, connection: nil) = missing(:fail)

      # Moves jobs that are due from :schedule and :retry into their queues, and adds `enqueued_at` where it is missing. An entry
      # that is no job goes to :dead, with the reason in it if it is JSON.
      #
      # @param limit [Integer] how many at most
      # @param by [String, nil] the node that calls. One of all hears when the next is due: the first, or the one that knows it.
      #   The others need not wake then
      # @return [Array(Integer, Float, Array<Array(String, String)>)] how many were moved; the seconds until the next is due,
      #   nil: there is none, or another one wakes for it; and for each that is dead now its entry and the reason
      # @since 0.1.0
      def due(limit, by: nil, connection: nil) = missing(:due)

      # Waits until a job is stored that is due within {POLL_SECONDS}, and earlier than what somebody wakes for, see {#due}. One
      # of those who wait is told; when nobody waits, the next one who does.
      #
      # @param seconds [Numeric] how long to wait at most
      # @return [Boolean] whether it was told
      # @since 0.1.0
      def wait_due(seconds, connection: nil) = missing(:wait_due)

      # @!group Nodes

      # Extends the leases of nodes to the given seconds from now, and registers those that are new. Call it before the first
      # {#fetch}: a node that has jobs and no lease counts as one whose lease has run out.
      #
      # While nobody can reach the storage nobody can extend a lease. So when for longer than half a lease no call of this verb or
      # of {#recover} has come, leases have not run out meanwhile, and those of before last for half their time at least.
      #
      # @param nodes [Array<String>]
      # @param seconds [Numeric]
      # @return [Array<Boolean>] false: the node's lease had run out, so others may have taken over what it had in flight
      # @since 0.1.0
      def extend(nodes, seconds, connection: nil) = missing(:extend)

      # Takes over what is in flight at nodes whose lease has run out: jobs go into the quarantine, entries that are no jobs back
      # to their queues.
      #
      # A job whose queue has a limit keeps its place meanwhile: while it waits in the quarantine for `hold` seconds from now on,
      # and as long as it runs there. Its old run may go on, for the process may only be frozen. So that counts for `hold`
      # seconds, or until an ack or a failure of that node says that it has ended: beside as many old runs as the limit allows, as
      # many others may begin.
      #
      # @param limit [Integer] how many at most; call it again at once when it returns as many
      # @param forget [Numeric] seconds after which such a node without jobs is forgotten
      # @param hold [Numeric] seconds: see above
      # @return [Array<Recovered>]
      # @raise [UnknownOutcomeError] it may be done or not; call it again at the usual time
      # @since 0.1.0
      def recover(limit, forget: FORGET_SECONDS, hold: HOLD_SECONDS, connection: nil) = missing(:recover)

      # How many jobs {#recover} has taken over from a node so far. One that lives looks, from time to time, whether that has
      # grown: then some of its runs are not its own any more.
      #
      # @param node [String]
      # @return [Integer]
      # @since 0.1.0
      def losses(node, connection: nil) = missing(:losses)

      # Takes over what silent nodes of Exq have in flight, and puts it back in front of its queues.
      #
      # @param limit [Integer] how many at most
      # @param silent [Numeric] seconds of silence, on top of the {SHOWN_SECONDS} for which a node's last sign of life lasts
      # @return [Array<Recovered>]
      # @raise [UnknownOutcomeError] it may be done or not; call it again at the usual time
      # @since 0.1.0
      def recover_exq(limit, silent: SHOWN_SECONDS, connection: nil) = missing(:recover_exq)

      # Forgets a node that has ended well. What it still has in flight goes back in front of its queues.
      #
      # @return [nil]
      # @since 0.1.0
      def leave(node, connection: nil) = missing(:leave)

      # Shows a node to dashboards, for {SHOWN_SECONDS} from now on. Nothing depends on it.
      #
      # @param info [Hash{String => Object}] with Sidekiq's keys: "hostname", "pid", "started_at", "tag", "concurrency", "queues",
      #   "weights", "labels", "version", "embedded"; and "quiet", "rss" (KB), "rtt_us". Ours have "ringspun", their version, and
      #   while somebody asks "waits", see {Worker.ask_waits}. See
      #   https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/launcher.rb (to_data, beat)
      # @param work [Array<Array(String, String, String, Numeric)>] slot, queue, entry and when its run began
      # @return [nil]
      # @since 0.1.0
      def announce(node, info, work, connection: nil) = missing(:announce)

      # Adds measures of jobs to what dashboards show of their classes, and to the totals. Nothing depends on it.
      #
      # @param measures [Array<Measure>]
      # @return [nil]
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def measure(measures, connection: nil) = missing(:measure)

      # The totals of all measures: of {CLASSES_MAX} classes, and of the others together under the name {OTHERS}.
      #
      # @return [Array<Measure>] in the order of their names, each without a minute
      # @since 0.1.0
      def measured(connection: nil) = missing(:measured)

      # Removes a node from dashboards.
      #
      # @return [nil]
      # @since 0.1.0
      def retract(node, connection: nil) = missing(:retract)

      # @return [Array<Hash{String => Object}>] what was announced of each node, with "identity", "busy" and "beat"
      # @since 0.1.0
      def nodes(connection: nil) = missing(:nodes)

      # @param nodes [Array<String>]
      # @return [Array<Array<Running>>] for each node the jobs that it has last announced, those that run longest first
      # @since 0.1.0
      def work(nodes, connection: nil) = missing(:work)

      # Leaves a message for a node.
      #
      # @return [nil]
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def signal(node, message, connection: nil) = missing(:signal)

      # Takes the messages for a node.
      #
      # @return [Array<String>] the oldest first
      # @raise [UnknownOutcomeError] some may be lost
      # @since 0.1.0
      def signals(node, connection: nil) = missing(:signals)

      # @!group Administration and locks

      # @return [Array<String>] the names of all queues to which anybody has ever pushed, in any order
      # @since 0.1.0
      def queues(connection: nil) = missing(:queues)

      # @return [Hash{Symbol => Integer, Hash, Array}] {STATS}; under :queues the size of each queue; and under :unreadable those
      #   that cannot be read, for something else has their place in the storage
      # @since 0.1.0
      def stats(connection: nil) = missing(:stats)

      # Reads jobs of a queue.
      #
      # @param from [Integer] 0 is the one that is fetched next
      # @param from_end [Boolean] 0 is the one that is fetched last, and those before it follow
      # @return [Array<Stored>]
      # @since 0.1.0
      def list(queue, from, count, from_end: false, connection: nil) = missing(:list)

      # Reads jobs of a set.
      #
      # @param set [Symbol] one of {SETS}
      # @param from [Integer] 0 is the earliest
      # @param from_end [Boolean] 0 is the latest, and those before it follow
      # @return [Array<Stored>]
      # @since 0.1.0
      def scan(set, from, count, from_end: false, connection: nil) = missing(:scan)

      # Finds a job by its jid. Looks at all that is stored, in parts: see {#search}.
      #
      # @param jid [String]
      # @return [Found, nil] nil: it is nowhere, or has moved meanwhile
      # @since 0.1.0
      def find(jid, connection: nil) = missing(:find)

      # What has happened to a job, each event in the same step in which it happened. Kept for as long as the settings say, from
      # the last event on.
      #
      # @param jid [String]
      # @return [Array<Event>] the last {EVENTS_MAX}, the oldest first
      # @since 0.1.0
      def history(jid, connection: nil) = missing(:history)

      # What jobs have returned, as their acks have said.
      #
      # @param jids [Array<String>]
      # @return [Array<String, nil>] for each its JSON text; nil: there is none, or none any more
      # @since 0.1.0
      def results(jids, connection: nil) = missing(:results)

      # Looks at some of the jobs for those that meet all conditions. Call it again with the page's cursor to look at more.
      #
      # A job that stays where it is from the first call to the last is found, whatever is enqueued and fetched meanwhile. It may
      # be found twice; so may one that moves on. One that goes back, as after a failure, may be missed. So may those of a queue
      # from which others were removed: as many as these.
      #
      # @param places [Array<String, Symbol>, nil] queues, {SETS} and :in_flight; :queue means all queues; nil: everything
      # @param job_class [Class, String, nil] also the class that another one has wrapped, as ActiveJob does
      # @param jid [String, nil]
      # @param tag [String, nil]
      # @param text [String, nil] a part of a value or of a key in the arguments
      # @param queue [String, nil] where it waits or was fetched; in a set, the queue that it names
      # @param count [Integer] about how many jobs to look at
      # @param cursor [String, nil] of a page with the same conditions
      # @return [Page]
      # @raise [ArgumentError] there is no such place, or that is no cursor
      # @since 0.1.0
      def search(places: nil, job_class: nil, jid: nil, tag: nil, text: nil, queue: nil, count: 1000, cursor: nil,
                 connection: nil)
        missing(:search)
      end

      # Removes jobs, each once. A job that is removed, cleared or killed releases the unique lock that its entry names, if it
      # holds it and it is not one until expiry.
      #
      # @param place [String, Symbol] a queue, or one of {SETS}
      # @param tokens [Array<String>]
      # @return [Array<Boolean>] whether each was there
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def remove(place, tokens, connection: nil) = missing(:remove)

      # Forgets all jobs of a queue or of a set. Those that come meanwhile may stay.
      #
      # @param place (see #remove)
      # @return [Integer] how many there were
      # @raise [UnknownOutcomeError] all, some or none may be forgotten
      # @since 0.1.0
      def clear(place, connection: nil) = missing(:clear)

      # Moves jobs to the dead, where they are kept as jobs that have died now.
      #
      # @param place [String, Symbol] a queue, :schedule or :retry
      # @param tokens [Array<String>]
      # @return [Array<Boolean>] whether each was there
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def kill(place, tokens, connection: nil) = missing(:kill)

      # Moves jobs of a set into the queues that they name.
      #
      # @param set [Symbol] one of {SETS}
      # @param tokens [Array<String>]
      # @return [Array<Boolean>] false: it was not there, or its entry is no job
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def retry_now(set, tokens, connection: nil) = missing(:retry_now)

      # Moves jobs to the end of a queue. What their entries say is up to the caller.
      #
      # @param place [String, Symbol] a queue, or one of {SETS}
      # @param moves [Array<Move>]
      # @param to [String] another queue
      # @return [Array<Boolean>] whether each was there
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def move(place, moves, to, connection: nil) = missing(:move)

      # Stores jobs where they were before, such as those of an export: at the end of a queue, or in a set at their times.
      #
      # @param place [String, Symbol] a queue, or one of {SETS}
      # @param jobs [Array<Stored>] whose tokens do not count
      # @return [Array<Boolean>] false: that set has a job with the same entry
      # @raise [UnknownOutcomeError] all, some or none may be stored
      # @since 0.1.0
      def restore(place, jobs, connection: nil) = missing(:restore)

      # Adds to the counts that {#stats} returns.
      #
      # @return [nil]
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def counters(processed: 0, failed: 0, twice: 0, connection: nil) = missing(:counters)

      # Forgets the oldest dead jobs, so that at most `count` stay, and those that have been dead for more than `seconds`.
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

      # Takes a unique lock, or prolongs it if this jid holds it.
      #
      # @return [String, nil] another jid that holds it
      # @since 0.1.0
      def lock(token, jid, seconds, connection: nil) = missing(:lock)

      # Releases a unique lock.
      #
      # @return [Boolean] whether that jid held it
      # @raise [UnknownOutcomeError]
      # @since 0.1.0
      def unlock(token, jid, connection: nil) = missing(:unlock)

      # Warnings about settings of the storage that endanger jobs.
      #
      # @return [Array<String>] empty if this program may not read the settings
      # @since 0.1.0
      def risks(connection: nil) = missing(:risks)

      # @return [Float] seconds since the epoch, by the storage's clock
      # @since 0.1.0
      def time(connection: nil) = missing(:time)

      # @!endgroup

      private

      def missing(verb) = raise(NotImplementedError, "#{self.class} has no #{verb}")

      # @param queue [String, Symbol] as callers name one
      # @return [String]
      # @raise [UsageError]
      def queue_named(queue)
        raise UsageError, "#{queue.inspect} is a set and no queue; scan lists it" if SETS.include?(queue)

        name = queue.is_a?(Symbol) ? queue.name : queue
        name.is_a?(String) && !name.empty? ? name : raise(UsageError, "a queue must be named by a String, got #{queue.inspect}")
      end
    end
  end
end

require_relative "storage/done"
require_relative "storage/upkeep"
require_relative "storage/crons"
require_relative "storage/registry"
require_relative "storage/choice"
require_relative "storage/searching"
require_relative "storage/served"
require_relative "storage/redis"
require_relative "storage/memory"
require_relative "storage/sqlite/offer"
require_relative "storage/setting"
