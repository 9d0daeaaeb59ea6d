# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/scripted_server"
require "support/seeds"

# Strands that share a pool, on a simulated machine with a scripted server: whatever is cancelled, late, or lost, each gets the
# answer to what it has asked, and nothing is left behind. The message of a failure names the seed.
class PostgresSimulationTest < Minitest::Test
  Postgres = Ringspun::Postgres

  FAULTS = { short_transfer: 0.15, interrupted: 0.05, delay: 0.3, late_cancel: 0.5, submission_full: 0.05, no_buffers: 0.05,
             late_wake: 0.05, scribble: 0.2 }.freeze
  RESETS = { **FAULTS, reset: 0.004 }.freeze

  LOSSES = [Postgres::ConnectionLost, Postgres::ConnectError].freeze

  def self.usage_error(words)
    Module.new { define_singleton_method(:===) { |error| error.is_a?(Ringspun::UsageError) && error.message.include?(words) } }
  end

  # What those get that outlive the block which had their connection, and a transaction that is to end in the midst of their
  # stream.
  OUTLIVED = usage_error(" has ended")
  IN_STREAM = usage_error("midst of a stream")

  # What became of transactions, by what they have inserted.
  Outcomes = Struct.new(:kept, :left, :unknown) do
    def initialize = super([], [], [])
  end

  # One pool in one simulated world.
  class World
    attr_reader :machine, :random, :server, :pool, :unexpected

    def initialize(machine, random, **options)
      @machine = machine
      @random = random
      @server = ScriptedServer.new(machine, random)
      @pool = Postgres::Pool.new(ScriptedServer::URL, **options)
      @nonces = 0
      @strands = []
    end

    def nonce = "n#{@nonces += 1}"

    def chance(probability) = @random.rand < probability

    def pause(most = 0.01) = @machine.sleep(@random.rand * most)

    def timeout = chance(0.4) ? @random.rand * 0.02 : nil

    # Terminates so many of the strands, each at some time.
    def terminate(strands, count)
      strands.sample(count, random: @random).each { |strand| @machine.spin { pause(0.1) && strand.terminate } }
    end

    # Of these a strand must expect that they happen, and that its time is over where it has one.
    def expecting(*errors, timeout: nil)
      errors.push(Ringspun::TimeoutError, Postgres::PoolTimeoutError) if timeout
      yield
      nil
    rescue *errors
      nil
    end

    # @yield in that many strands, which must all come to their end
    # @return [Array<Ringspun::Strand>]
    def strands(count) = Array.new(count) { @machine.spin { yield } }.tap { |strands| @strands.concat(strands) }

    def finish
      @strands.each do |strand|
        strand.await
      rescue Ringspun::TerminatedError
        nil
      end
      settle
      yield self
    ensure
      @pool.close
      @server.await_end
      @server.close
    end

    # The canceller and what the server still works on.
    def settle = @machine.sleep(200)
  end

  def test_statements_with_deadlines
    explore(faults: FAULTS) do |world|
      world.strands(8) { 4.times { ask(world) } }
    end
  end

  def test_statements_of_connections_that_end
    explore(faults: RESETS) do |world|
      world.strands(6) { 4.times { world.expecting(*LOSSES) { ask(world) } } }
      world.strands(2) { 2.times { world.expecting(*LOSSES) { end_connection(world) } } }
    end
  end

  def test_statements_of_connections_that_fall_silent
    expected = [*LOSSES, Ringspun::TimeoutError, Postgres::PoolTimeoutError]
    explore(faults: FAULTS, max: 3) do |world|
      world.strands(6) { 4.times { world.expecting(*expected) { ask_in_time(world) } } }
      world.strands(2) { world.expecting(*expected) { silence(world) } }
    end
  end

  def test_statements_without_pipelining
    explore(faults: FAULTS, max: 3, pipelining: false) do |world|
      world.strands(8) { 3.times { ask(world) } }
    end
  end

  # With whose end goes what was begun behind one that has left a transaction open, whatever the server said of it.
  def test_statements_that_leave_what_others_would_meet
    explore(faults: FAULTS, max: 2) do |world|
      outcomes = Outcomes.new
      world.strands(2) { 2.times { world.expecting(Postgres::ConnectionLost) { leave(world) } } }
      world.strands(6) { 4.times { world.expecting(Postgres::ConnectionLost) { insert(world, outcomes) } } }
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  # Of which some hold up a lane for longer than others may wait behind them.
  def test_statements_beside_some_that_take_seconds
    explore(faults: FAULTS, max: 2) do |world|
      outcomes = Outcomes.new
      strands = world.strands(2) { 2.times { world.expecting(timeout: true) { take_long(world) } } }
      strands += world.strands(6) { 3.times { world.pause(2) && (world.chance(0.7) ? ask(world) : batch(world, outcomes)) } }
      world.terminate(strands, 2)
      world.strands(1) { world.expecting(timeout: true) { world.pool.session { world.pause(3) } } }
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  def test_cancellations_that_the_server_passes_over
    explore(faults: FAULTS) do |world|
      world.server.deaf = true
      world.strands(3) { world.expecting(timeout: true) { world.pool.query("work $1, $2", "late", "1000", timeout: 0.05) } }
    end
  end

  # Who reads for all passes that on, also to who has gone in the same moment.
  def test_strands_whose_time_is_over_in_the_same_moment
    explore(faults: FAULTS) do |world|
      world.pool.query("echo $1", world.nonce)
      world.strands(3) { world.expecting(timeout: true) { world.pool.query("work $1, $2", "late", "0.1", timeout: 0.05) } }
      world.strands(2) { assert_equal "early", world.pool.query_value("echo $1", "early") }
    end
  end

  def test_evaluations_that_are_concluded
    explore(faults: FAULTS, max: 3) do |world|
      outcomes = Outcomes.new
      world.strands(8) { 3.times { conclude(world, outcomes) } }
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  def test_batches
    explore(faults: FAULTS) do |world|
      outcomes = Outcomes.new
      strands = world.strands(6) { 3.times { world.chance(0.6) ? batch(world, outcomes) : ask(world) } }
      world.terminate(strands, 1)
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  def test_batches_of_connections_that_end
    explore(faults: RESETS) do |world|
      outcomes = Outcomes.new
      world.strands(6) { 2.times { world.expecting(*LOSSES) { batch(world, outcomes) } } }
      world.strands(2) { world.expecting(*LOSSES) { end_connection(world) } }
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  def test_transactions_that_are_left
    explore(faults: FAULTS, max: 3) do |world|
      outcomes = Outcomes.new
      world.strands(6) { 3.times { transact(world, outcomes) } }
      world.strands(2) { 3.times { ask(world) } }
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  def test_transactions_of_strands_that_are_terminated
    explore(faults: FAULTS, max: 3) do |world|
      outcomes = Outcomes.new
      world.terminate(world.strands(6) { 3.times { transact(world, outcomes) } }, 3)
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  def test_transactions_of_connections_that_end
    explore(faults: RESETS, max: 3) do |world|
      outcomes = Outcomes.new
      world.strands(6) { 3.times { world.expecting(*LOSSES) { transact(world, outcomes) } } }
      world.strands(2) { world.expecting(*LOSSES) { end_connection(world) } }
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  # What they did not commit before is not committed, and nobody gets rows of others.
  def test_users_that_outlive_their_session
    outlive(FAULTS) { |world, outcomes| lend(world, outcomes) }
  end

  def test_users_that_outlive_their_session_and_connection
    outlive(RESETS) { |world, outcomes| world.expecting(*LOSSES) { lend(world, outcomes) } }
  end

  def test_streams_that_are_left
    explore(faults: FAULTS, max: 3) do |world|
      world.terminate(world.strands(5) { 2.times { stream(world) } }, 2)
      world.strands(2) { 3.times { ask(world) } }
    end
  end

  def test_streams_of_connections_that_end
    explore(faults: RESETS, max: 3) do |world|
      world.strands(6) { 2.times { world.expecting(*LOSSES) { stream(world, %w[23505 die cut]) } } }
    end
  end

  # Nobody waits until the pool's own patience is over: who would, has been forgotten.
  def test_waits_for_the_pool
    explore(faults: FAULTS, max: 2, checkout_timeout: 1000, max_lifetime: 0.1) do |world|
      outcomes = Outcomes.new
      world.terminate(world.strands(8) { 2.times { use(world, outcomes) } }, 3)
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  def test_waits_for_a_pool_whose_connections_end_or_do_not_begin
    explore(faults: RESETS, max: 2, checkout_timeout: 1000) do |world|
      world.server.refusals = 0.2
      outcomes = Outcomes.new
      world.terminate(world.strands(8) { 2.times { world.expecting(*LOSSES) { use(world, outcomes) } } }, 2)
      world.strands(2) { world.expecting(*LOSSES) { world.pool.session { |session| end_connection(world, session) } } }
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  def test_a_wait_for_the_pool_that_takes_too_long
    explore(faults: FAULTS, max: 1) do |world|
      world.pool.session do
        waiter = world.machine.spin { world.pool.session { flunk "there is but one" } }
        error = assert_raises(Postgres::PoolTimeoutError) { waiter.await }
        assert_match(/no connection within 5 s: all 1 are in use/, error.message)
      end
    end
  end

  private

  # Of a server that takes seconds the client says that a pooler may have lost what was sent.
  def explore(...)
    _, said = capture_io { explore_seeds(...) }
    assert_empty said.lines.grep_v(/has answered nothing for five seconds|on a shared connection, and /)
  end

  def explore_seeds(faults:, **options)
    Seeds.of_the_day(100).each do |each|
      Supervised.tick
      Ringspun::Simulation.explore(1, from: each, faults:) do |machine|
        before = machine.strands.size
        srand(each) # of the back-off of the pool
        world = World.new(machine, Random.new(each), **options)
        afterwards = yield world
        world.finish { check(world) }
        afterwards.call if afterwards.is_a?(Proc)
        assert_equal before, machine.strands.size, Ringspun.inspect_tree
      end
    end
  end

  def check(world)
    assert_equal world.pool.metrics[:connections], world.pool.metrics[:idle]
    assert_equal 0, world.pool.metrics[:waiting]
    assert_empty world.server.backends.map(&:status) - ["I"]
    refute world.server.backends.any?(&:busy?), "the server works for nobody"
  end

  # One statement in one of many ways.
  def ask(world)
    world.pause
    nonce = world.nonce
    timeout = world.timeout
    world.expecting(timeout:) do
      case world.random.rand(5)
      when 0 then assert_equal nonce, world.pool.query_value("echo $1", nonce, timeout:)
      when 1 then within(world, timeout) { assert_equal nonce, world.pool.query_value("echo $1", nonce) }
      when 2 then assert_equal nonce, world.pool.query_value("work $1, $2", nonce, "0.02", timeout:)
      when 3 then assert_rows(nonce, world.pool.query("rows $1, $2", nonce, "3", timeout:).rows)
      when 4 then fail_by(world, nonce)
      end
    end
  end

  def take_long(world)
    nonce = world.nonce
    timeout = world.chance(0.5) ? world.random.rand * 4 : nil
    assert_equal nonce, world.pool.query_value("work $1, $2", nonce, (world.random.rand * 4).to_s, timeout:)
  end

  def leave(world)
    world.pause
    assert_raises(Postgres::UnsafeSessionState, Postgres::ConnectionLost) do
      world.pool.query(%w[open alter].sample(random: world.random), world.nonce)
    end
  end

  def insert(world, outcomes)
    world.pause
    nonces = [world.nonce]
    outcome = :unknown
    asked = ["insert $1", *nonces]
    world.chance(0.5) ? world.pool.execute(*asked) : world.pool.batch { |batch| batch.execute(*asked) }
    outcome = :kept
  ensure
    outcomes[outcome] << nonces
  end

  def end_connection(world, client = world.pool)
    world.pause(0.05)
    client.query(%w[die cut].sample(random: world.random), world.nonce)
    flunk "the connection has ended"
  end

  # The connection says nothing any more, to nobody.
  def silence(world)
    world.pause(0.05)
    world.pool.query("mute $1", world.nonce, timeout: world.random.rand)
    flunk "the connection is silent"
  end

  def ask_in_time(world)
    world.pause
    nonce = world.nonce
    seconds = world.random.rand * 30
    case world.random.rand(3)
    when 0 then assert_equal nonce, world.pool.query_value("echo $1", nonce, timeout: seconds)
    when 1 then assert_equal nonce, world.pool.batch(timeout: seconds) { |batch| batch.query("echo $1", nonce) }.first.value
    when 2 then assert_equal nonce, world.pool.transaction(timeout: seconds) { |t| t.query_value("echo $1", nonce) }
    end
  end

  # In the midst of it, before, or afterwards.
  def conclude(world, outcomes)
    nonce = world.nonce
    evaluation = case world.random.rand(4)
                 when 0 then world.pool.async.query_value("echo $1", nonce)
                 when 1 then Ringspun.concurrently { batch(world, outcomes) || nonce }
                 when 2 then Ringspun.concurrently { stream(world) || nonce }
                 else Ringspun.concurrently { transact(world, outcomes) || nonce }
                 end
    world.pause
    begin
      evaluation.conclude_to(:concluded) if world.chance(0.5)
    rescue Ringspun::Evaluation::Error
      nil # the answer has come before
    end
    assert_includes [nonce, :concluded], evaluation.await_result
  end

  def outlive(faults, &lending)
    explore(faults:, max: 2, checkout_timeout: 1000) do |world|
      outcomes = Outcomes.new
      world.terminate(world.strands(5) { 2.times { lending.call(world, outcomes) } }, 2)
      world.strands(2) { 2.times { world.expecting(*LOSSES) { transact(world, outcomes) } } }
      -> { assert_outcomes(outcomes, world.server.committed) }
    end
  end

  # A session, or a transaction, which another strand goes on with for as long as it likes. Where a savepoint of that one's was
  # released too late, the connection is closed.
  def lend(world, outcomes)
    world.pause
    outer = world.chance(0.3)
    world.expecting(Postgres::TransactionRolledBack, IN_STREAM, *(LOSSES if outer)) do
      world.pool.__send__(outer ? :transaction : :session) do |client|
        world.strands(1) { world.expecting(OUTLIVED, *LOSSES) { go_on(world, client, outcomes, outer) } }
        world.pause(0.03)
        break if world.chance(0.3)
      end
    end
  end

  def go_on(world, client, outcomes, outer)
    case world.random.rand(3)
    when 0 then stream(world, client:)
    when 1 then transact(world, outer ? Outcomes.new : outcomes, client:)
    else 3.times { world.nonce.then { |nonce| assert_equal nonce, client.query_value("work $1, $2", nonce, "0.01") } }
    end
  end

  # A connection for one user, for which most have to wait.
  def use(world, outcomes)
    case world.random.rand(4)
    when 0 then transact(world, outcomes)
    when 1 then stream(world)
    else hold(world, world.timeout)
    end
  end

  def hold(world, timeout)
    world.pause
    nonce = world.nonce
    world.expecting(timeout:) do
      world.pool.session(timeout:) do |session|
        assert_equal nonce, session.query_value("echo $1", nonce)
        world.pause
      end
    end
  end

  def batch(world, outcomes)
    world.pause
    nonces = Array.new(3) { world.nonce }
    failing = world.chance(0.3)
    outcome = :unknown # also when its strand is terminated
    timeout = world.timeout
    world.expecting(Postgres::UniqueViolation, timeout:) do
      results = world.pool.batch(timeout:) do |batch|
        nonces.each { |nonce| batch.query("insert $1", nonce).query("echo $1", nonce) }
        batch.query("fail $1, $2", "", "23505") if failing
      end
      refute failing
      assert_equal nonces, results.filter_map(&:value)
      outcome = :kept
    end
  ensure
    outcomes[failing ? :left : outcome] << nonces if nonces
  end

  # Leaves it in one of many ways.
  def transact(world, outcomes, client: world.pool)
    nonces = []
    outcome = :left
    world.pause
    timeout = world.timeout
    world.expecting(Postgres::UniqueViolation, Postgres::TransactionRolledBack, timeout:) do
      catch(:left) do
        returned = client.transaction(timeout:) do |t|
          work_in(world, t, nonces)
          case world.random.rand(6)
          when 0 then throw :left
          when 1 then break
          when 2 then t.query("fail $1, $2", "", "23505")
          end
          outcome = :unknown # until the commit is answered
        end
        outcome = :kept if returned
      end
    end
  ensure
    outcomes[outcome] << nonces
  end

  def work_in(world, transaction, nonces)
    2.times do
      nonce = world.nonce
      transaction.execute("insert $1", nonce)
      nonces << nonce
      assert_equal nonce, transaction.query_value("echo $1", nonce)
    end
    savepoint(world, transaction, nonces) if world.chance(0.4)
  end

  # In which one is taken back, or kept.
  def savepoint(world, transaction, nonces)
    nonce = world.nonce
    transaction.transaction do |inner|
      inner.execute("insert $1", nonce)
      break if world.chance(0.5)

      nonces << nonce
    end
  end

  # With a break, a deadline or an error, or to its end. Few are longer than what the server is asked for at once.
  def stream(world, failures = %w[23505], client: world.pool)
    world.pause
    nonce = world.nonce
    count = (world.chance(0.05) ? [499, 500, 501, 1000, 1001, 2500] : [0, 1, 5]).sample(random: world.random)
    stop = world.chance(0.4) ? world.random.rand(count + 1) : count
    failure = failures.sample(random: world.random) if world.chance(0.2)
    timeout = world.random.rand * 0.02 if world.chance(0.3)
    rows = []
    world.expecting(timeout:) do
      client.stream("rows $1, $2, $3", nonce, count.to_s, failure, timeout:, as: :array) do |row|
        break if rows.size == stop

        rows << row
        world.pause(0.001) if world.chance(0.05)
      end
      assert_equal stop, rows.size
    end
  rescue Postgres::UniqueViolation => error
    assert_equal [failure, nonce], ["23505", error.primary]
    nil
  ensure
    assert_equal Array.new(rows.size) { |number| [nonce, number.to_s] }, rows if rows
  end

  def assert_outcomes(outcomes, committed)
    assert_empty outcomes.kept.flatten - committed, "lost"
    assert_empty outcomes.left.flatten & committed, "left"
    outcomes.unknown.each { |nonces| assert_includes [[], nonces], nonces & committed }
    assert_equal committed.uniq, committed
  end

  def fail_by(world, nonce)
    world.pool.query("fail $1, $2", nonce, "23505")
    flunk "the statement has failed"
  rescue Postgres::UniqueViolation => error
    assert_equal nonce, error.primary
  end

  def within(world, timeout, &) = world.machine.timeout(timeout || 1000, &)

  def assert_rows(nonce, rows)
    assert_equal Array.new(3) { |number| [nonce, number.to_s] }, rows.map(&:to_a)
  end
end
