# frozen_string_literal: true

module RoomsTogether
  # A job of an actor. It says in `tenant` whose it is, as middleware reads it from what the strand carries along.
  class Job
    include Ringspun::Jobs::Job
    job_options retry: 3
    retry_in { 0.01 }

    class << self
      attr_accessor :site
    end

    def perform(actor, form)
      Job.site.runs(jid, actor, ringspun_job["tenant"]) { act(form) }
    end

    private

    def ringspun_job = Thread.current[:job]

    def act(form)
      case form
      when 1 then sleep 0.002
      when 2 then Job.site.database.transaction { |transaction| transaction.query("select 1") }
      when 3 then Job.site.get("/value?3")
      when 4 then raise "the first time" if Job.site.first_time?(jid)
      when 5 then Ringspun.spin { sleep 0.001 }
      end
    end
  end

  # Who enqueues.
  class Stamp
    def call(_job_class, job, _queue)
      job["tenant"] = Fiber[:actor]
      yield
    end
  end

  # Who runs.
  class Read
    def call(_instance, job, _queue)
      Thread.current[:job] = job
      yield
    end
  end

  # A web server, a pool of connections and a worker on one machine, for many programs.
  class Site
    # So many programs do not end together as one that is stuck.
    PROGRAM_SECONDS = 60

    attr_reader :database, :table, :folder, :mutex

    # @param settings [Hash] of {Ringspun::Jobs::Config}
    # @yieldparam site [Site]
    def self.open(url, folder, settings)
      config = Ringspun::Jobs.config
      config.update(settings)
      config.client_middleware.add(Stamp)
      config.server_middleware.add(Read)
      Ringspun.run { |machine| yield new(machine, url, folder) }
    ensure
      Ringspun::Jobs.close
      config.client_middleware.remove(Stamp)
      config.server_middleware.remove(Read)
      config.update(settings.transform_values { |value| value.is_a?(Hash) ? {} : nil }.merge("namespace" => ""))
    end

    def initialize(machine, url, folder)
      @machine = machine
      @folder = folder
      @table = "rooms_#{SecureRandom.hex(4)}"
      @database = Ringspun::Postgres::Pool.new(url, max: 60, checkout_timeout: PROGRAM_SECONDS)
      @mutex = Thread::Mutex.new
      @ids = 0
      @runs = Hash.new(0)
      @tried = {}
      @log = StringIO.new
      Job.site = self
    end

    # @yieldreturn [Object]
    def working
      @database.execute("create table #{@table} (id int primary key)")
      @server = Ringspun::HTTP.listen(method(:answer), "127.0.0.1", 0, errors: @log)
      worker = Ringspun::Jobs::Worker.new(Ringspun::Jobs.config, storage: Ringspun::Jobs.storage, logger: Logger.new(@log))
      running = @machine.spin { worker.run }
      yield
    ensure
      worker&.stop
      running&.join
      @server&.stop
      @database.execute("drop table if exists #{@table}")
      @database.close
    end

    # @param program [Program]
    # @return [Array<String>] what is wrong
    def trouble(program)
      @ledger = Ledger.new
      @machine.timeout(PROGRAM_SECONDS) do
        actors = program.actors.each_with_index.map do |steps, name|
          @machine.spin { Actor.new(self, @ledger, name).run(steps) }
        end
        @machine.join(*actors)
        @machine.sleep(0.001) until @ledger.all_run?(@runs) && at_rest?
      end
      @ledger.judge(@runs, @database.query("select id from #{@table}").map { |row| row[:id] })
    rescue Ringspun::TimeoutError
      ["it does not end:\n#{@machine.describe_strands}#{@log.string.lines.last(10).join}"]
    ensure
      @database.execute("truncate #{@table}")
    end

    # --- for actors and jobs ---

    def next_id = @ids += 1

    def get(path) = Net::HTTP.get("127.0.0.1", path, @server.port)

    def first_time?(jid) = !@tried.key?(jid) && (@tried[jid] = true)

    def runs(jid, actor, tenant)
      @ledger.expect("who has enqueued #{jid}", actor, tenant)
      yield
      @runs[jid] += 1
    end

    private

    # Nobody has a connection for good.
    def at_rest? = @database.metrics.then { |all| all[:waiting].zero? && all[:idle] == all[:connections] }

    def answer(env)
      query = env["QUERY_STRING"]
      case env["PATH_INFO"]
      when "/value" then [200, {}, [@database.query_value("select 'value ' || $1::text", query)]]
      else [200, {}, rows(Integer(query))]
      end
    end

    def rows(count)
      lambda do |output|
        @database.stream("select generate_series(1, $1)", count, as: :array) { |(number)| output.write("#{number}\n") }
        output.close
      end
    end
  end
end
