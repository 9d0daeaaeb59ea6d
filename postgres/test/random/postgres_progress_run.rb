# frozen_string_literal: true

require "random/postgres_progress"

class PostgresProgress
  # Runs programs on pools, and says what was wrong.
  class Runner
    # Seconds after which a program does not end, also where nothing of it has a processor for a while.
    LIMIT = 120

    # By which a block leaves a transaction.
    Left = Class.new(StandardError)

    # With a connection for each statement and transaction, so that nobody waits for anybody but the server.
    REFERENCE = { pipelining: false, max: 50 }.freeze

    # @param server [PG::Connection]
    # @param make_pool [#call] options to a pool
    # @yieldparam runner [Runner]
    def self.open(server, make_pool)
      server.exec("create table drawn_rows (id int primary key, n bigint not null)")
      yield new(server, make_pool)
    ensure
      server.exec("drop table if exists drawn_rows")
    end

    def initialize(server, make_pool)
      @server = server
      @make_pool = make_pool
      @base = 0
    end

    # @return [String, nil] what is wrong
    def failure(program)
      @base += 100 # rows and locks of its own, for what did not end before may still add to those that it had
      @server.exec("insert into drawn_rows select #{@base} + g, 0 from generate_series(0, #{ROWS - 1}) g")
      @ends = {}.compare_by_identity
      @wrong = []
      pool = @make_pool.call(program.options)
      ended = program.threads ? in_threads(program, pool) : in_strands(program, pool)
      ended ? wrong(program, pool) : "does not end: #{program.steps.reject { |step| @ends[step] }.join("; ")}"
    ensure
      pool&.close
    end

    private

    def callers(program) = program.steps.group_by(&:caller).values

    def in_strands(program, pool)
      Ringspun.run do |machine|
        elsewhere = ->(&block) { machine.scope { |scope| scope.spin(&block) } }
        machine.scope(deadline: LIMIT) do |scope|
          callers(program).each { |steps| scope.spin { take(steps, Place.new(pool, pool, nil, elsewhere)) } }
        end
        true
      rescue Ringspun::TimeoutError
        false
      end
    end

    def in_threads(program, pool)
      elsewhere = ->(&block) { thread(&block).join }
      threads = callers(program).map { |steps| thread { take(steps, Place.new(pool, pool, nil, elsewhere)) } }
      due = now + LIMIT
      ended = threads.map { |thread| thread.join([due - now, 0].max) }.all?
      threads.each(&:kill).each(&:join)
      ended
    end

    def thread(&) = Thread.new(&).tap { |thread| thread.report_on_exception = false }

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Where a step asks.
    #
    # @!attribute client
    #   @return [Ringspun::Postgres::Client]
    # @!attribute own
    #   @return [Hash{Integer => Integer}, nil] what the transaction has left in the rows that it has locked
    # @!attribute elsewhere
    #   @return [Proc] runs a block in another strand or thread, and waits for it
    Place = Data.define(:client, :pool, :own, :elsewhere) do
      def on_pool = with(client: pool, own: nil)
    end

    def take(steps, place)
      steps.each do |step|
        @ends[step] = begin
          __send__(step.verb, place, *step.with)
        rescue Left, Ringspun::Postgres::ServerError => error
          error.class.name[/\w+\z/]
        rescue Ringspun::Postgres::Error => error
          "#{error.class}: #{error.message}"
        end
      end
    end

    def all(steps, place) = steps.each { |step| __send__(step.verb, place, *step.with) }

    # --- the verbs, each of which answers how it ends ---

    ADD = "update drawn_rows set n = n + $2 where id = $1 returning n"

    def add(place, row, delta)
      left = place.client.query_value(ADD, @base + row, delta)
      place.own[row] = left if place.own
      "done"
    end

    def read(place, row)
      nonce = rand(1 << 60)
      n, echo = place.client.query("select n, $2::bigint from drawn_rows where id = $1", @base + row, nonce).rows.first
      @wrong << "the answer to another question" unless echo == nonce
      @wrong << "#{n} and not #{place.own[row]} in a row that is locked" if place.own&.key?(row) && place.own[row] != n
      "done"
    end

    def slow(place, milliseconds)
      nonce = rand(1 << 60)
      echo = place.client.query("select pg_sleep($1), $2::bigint", milliseconds / 1000.0, nonce).rows.dig(0, 1)
      @wrong << "the answer to another question" unless echo == nonce
      "done"
    end

    def fail(place) = place.client.query("select 1 / $1::int", 0) && "done"

    def lock(place, key) = place.client.execute("select pg_advisory_xact_lock($1)", @base + key) && "done"

    def batch(place, steps)
      place.client.batch do |batch|
        steps.each do |step|
          step.verb == :add ? batch.execute(ADD, @base + step.with[0], step.with[1]) : batch.execute("select 1 / $1::int", 0)
        end
      end
      "done"
    end

    def stream(place, count, stop, steps)
      seen = 0
      place.client.stream("select g from generate_series(1, $1::int) g", count, as: :array) do |(number)|
        break if seen == stop

        @wrong << "row #{number} after #{seen}" unless number == seen + 1
        seen = number
        all(steps, place.on_pool) if seen == 1
      end
      @wrong << "#{seen} rows, and not #{stop}" unless seen == stop
      "done"
    end

    def transaction(place, steps, leave, options)
      catch(:left) do
        place.pool.transaction(**options) do |transaction|
          all(steps, place.with(client: transaction, own: {}))
          raise Left if leave == :raise

          throw :left, "left" if leave == :throw
        end
        "done"
      end
    end

    def savepoint(place, steps, leave)
      own = place.own.dup
      place.client.transaction do |inner|
        all(steps, place.with(client: inner, own:))
        raise Left if leave == :raise
      end
      place.own.replace(own)
    rescue Left, Ringspun::Postgres::DivisionByZero
      nil
    end

    def session(place, key, steps)
      place.pool.session do |session|
        session.execute("select pg_advisory_lock($1)", @base + key)
        all(steps, place.with(client: session))
      end
      "done"
    end

    def aside(place, step) = all([step], place.on_pool)

    def sent(place, step) = place.elsewhere.call { all([step], place.on_pool) }

    # --- what is wrong ---

    def wrong(program, pool)
      program.steps.each do |step|
        expected = [Model.end_of(step), *Model.others(step, program.ordered)]
        next if expected.include?(@ends[step])

        @wrong << "#{step}: ended with #{@ends[step]}, and not with #{expected.join(" or ")}"
      end
      found, wanted = rows, sums(program.steps.select { |step| @ends[step] == "done" })
      @wrong << "the rows are #{found}, and not #{wanted}" unless found == wanted
      left_behind(pool)
      @wrong.join("\n") unless @wrong.empty?
    end

    def rows
      @server.exec("select n from drawn_rows where id between #{@base} and #{@base + ROWS - 1} order by id")
             .column_values(0).map(&:to_i)
    end

    def sums(steps)
      steps.flat_map { |step| Model.added(step) }.each_with_object(Array.new(ROWS, 0)) { |(row, delta), all| all[row] += delta }
    end

    def left_behind(pool)
      metrics = pool.metrics
      @wrong << "left behind: #{metrics}" unless metrics[:connections] == metrics[:idle] && metrics[:waiting].zero?
      left = @server.exec("select state, query from pg_stat_activity where state like 'idle in transaction%'").values
      @wrong << "transactions are left open: #{left}" if left.any?
      locks = @server.exec("select count(*) from pg_locks where locktype = 'advisory'").getvalue(0, 0).to_i
      @wrong << "#{locks} locks are left" if locks.positive?
    end
  end
end
