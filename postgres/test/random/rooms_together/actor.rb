# frozen_string_literal: true

module RoomsTogether
  # A strand of a program, and those that it spins.
  class Actor
    # What a wait may end with that is cut off.
    ENDS = [Ringspun::TimeoutError, Ringspun::TerminatedError, Timeout::Error, Ringspun::Postgres::TransactionRolledBack].freeze

    def initialize(site, ledger, name)
      @site = site
      @ledger = ledger
      @name = name
      @database = site.database
      @messages = []
    end

    def run(steps)
      @machine = Ringspun::Machine.current
      @strand = @machine.running
      Fiber[:actor] = @name
      quietly { perform(steps) }
      @ledger.expect("the storage of #{@name}", @name, Fiber[:actor])
      took = @messages.map { @machine.park }
      @ledger.expect("messages of #{@name}", @messages, took.sort)
    end

    private

    def perform(steps) = steps.each { |step| __send__(step.kind, step) }

    def quietly
      yield
    rescue *ENDS
      nil
    rescue StandardError, Ringspun::Error => error
      @ledger.failed(error)
    end

    def expect(step, expected, actual) = @ledger.expect("#{step.kind} of #{@name}", expected, actual)

    # --- the database ---

    def ask(step) = expect(step, step.number, @database.query_value("select $1::int", step.number))

    def stream(step)
      count = 0
      @database.stream("select generate_series(1, 200)", as: :array) { (count += 1) == 5 && step.number.zero? ? break : nil }
      expect(step, step.number.zero? ? 5 : 200, count)
    end

    def copy(_step)
      ids = Array.new(3) { @site.next_id }
      inserting(*ids) { |done| @database.copy_in("copy #{@site.table} (id) from stdin", ids.map { |id| [id] }).then(&done) }
    end

    def batch(step)
      results = @database.batch { |batch| 3.times { |number| batch.query("select $1::int", number) } }
      expect(step, [0, 1, 2], results.map(&:value))
    end

    def transaction(step)
      id = @site.next_id
      inserting(id) do |done|
        @database.transaction do |transaction|
          transaction.execute("insert into #{@site.table} (id) values ($1)", id)
          perform(step.body)
          expect(step, id, transaction.query_value("select id from #{@site.table} where id = $1", id))
          done.call
        end
      end
    end

    # What is cut off after the block has called `done` may be stored.
    def inserting(*ids)
      heard = :refused
      yield ->(*) { heard = :unknown }
      heard = :stored
    rescue Ringspun::Postgres::ServerError
      heard = :refused
      raise
    ensure
      heard = :unknown if heard == :refused && ids.size > 1 # a COPY is one statement, which may end before anybody hears of it
      ids.each { |id| @ledger.row(id, heard) }
    end

    def listen(step)
      @database.listen("rooms#{step.number}") do |subscription|
        @database.notify("rooms#{step.number}", "told")
        expect(step, "told", subscription.pop.payload)
      end
    end

    # --- jobs and the web ---

    def push(step) = @ledger.accepted(Job.perform_async(@name, step.number))

    def push_many(step) = @ledger.accepted(*Job.perform_bulk(Array.new(step.number + 1) { [@name, 0] }))

    def get(step) = expect(step, "value #{step.number}", @site.get("/value?#{step.number}"))

    def get_rows(step) = expect(step, 300, @site.get("/rows?300").lines.size)

    # --- what others have for this strand, while it does something else ---

    def note_to_self(step)
      @messages << (number = @messages.size)
      return @machine.schedule(@strand, number) if step.number.zero?

      sender = -> { sleep(step.pause) && @machine.schedule(@strand, number) }
      step.number.odd? ? Thread.new(&sender) : @machine.spin(&sender)
    end

    def offload(step) = expect(step, @name, Ringspun.offload { Fiber[:actor] })

    def concurrently(step) = expect(step, @name, Ringspun.concurrently { sleep(step.pause) && Fiber[:actor] }.await_result)

    # --- stock Ruby ---

    def pause(step) = sleep(step.pause)

    def process(step) = expect(step, "#{step.number}\n", IO.popen(["echo", step.number.to_s], &:read))

    def file(step)
      path = File.join(@site.folder, "file#{@site.next_id}")
      File.write(path, "x" * (1000 * step.number))
      expect(step, 1000 * step.number, File.size(path))
      File.unlink(path)
    end

    def queue(step)
      queue = Thread::Queue.new
      Thread.new { queue << step.number }
      expect(step, step.number, queue.pop)
    end

    def mutex(step) = @site.mutex.synchronize { sleep(step.pause / 10) }

    def spins(step)
      strands = Array.new(step.number) { |number| @machine.spin { @database.query_value("select $1::int", number) } }
      expect(step, Array.new(step.number) { |number| number }, @machine.await(*strands))
    end

    # --- what cuts others off ---

    def limit(step)
      @machine.timeout(step.pause) { perform(step.body) }
    rescue Ringspun::TimeoutError
      nil
    end

    def stock_limit(step)
      Timeout.timeout(step.pause) { perform(step.body) }
    rescue Timeout::Error
      nil
    end

    def scope(step)
      @machine.scope do |scope|
        scope.spin { quietly { perform(step.body) } }
        scope.spin { sleep(step.pause) && scope.cancel }
        push(step)
      end
    end

    def shield(step) = Ringspun.shield { perform(step.body) }

    def terminated(step)
      strand = @machine.spin { quietly { perform(step.body) } }
      sleep(step.pause)
    ensure
      strand&.terminate
    end
  end
end
