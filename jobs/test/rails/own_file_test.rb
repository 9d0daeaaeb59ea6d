# frozen_string_literal: true

require "jobs_helper"
require "support/forked_command"
require "support/rails_app"
require "tmpdir"

# Jobs in the database file of a program with Active Record. Each test is a program with the gems of this Rails, and needs no
# application of it. It is forked from a Ruby that has loaded these gems, and has not used them.
class RailsOwnFileTest < Minitest::Test
  include Strands
  include AnyBackend

  # The tests' system may have an old SQLite, and their gem sqlite3 be built with that. Here it uses the other gem's.
  NEW = %(require "extralite"\n)
  LOADED = File.expand_path("../support/own_file_prelude.rb", __dir__)

  BEGINNING = <<~'RUBY'
    require "sqlite3"
    require "active_record"
    require "ringspun/jobs/active_record"
    Jobs = Ringspun::Jobs

    class Note < ActiveRecord::Base
    end

    class Tell
      include Jobs::Job

      def perform(id) = File.write("told", "#{id} #{Note.find(id).text}\n", mode: "a")
    end

    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "app.sqlite3", timeout: 10_000)
    Jobs.configure { |config| config.storage = "sqlite:#{Dir.pwd}/app.sqlite3" }
    def connection = Note.connection
    def on = Tell.set(connection: connection)
    def enqueued = Jobs.storage.list("default", 0, 99).flat_map { |job| Jobs::Wire.parse(job.entry)["args"] }
    def tell(*values) = puts(values.inspect)
    def error_of
      yield
      nil
    rescue StandardError => error
      "#{error.class}: #{error.message}"
    end
  RUBY

  TABLE = %(connection.create_table(:notes) { |table| table.string :text }\n)

  # Before descriptors are counted.
  def before_setup
    server
    super
  end

  def setup
    super
    @folder = Dir.mktmpdir("ringspun-own-file-")
  end

  def teardown
    @command&.close
    FileUtils.remove_entry(@folder)
    super
  end

  def env = { **RailsApp.env(RailsApp::GEMS), "RUBYOPT" => "-rbundler/setup" }

  def server = ForkServer.for(LOADED, env:)

  # What the program prints, each line a value of Ruby's.
  #
  # @param fresh [Boolean] it boots, for the test is about what is loaded
  def run_program(code, beginning: NEW + BEGINNING + TABLE, fresh: false)
    code = "Dir.chdir(#{@folder.dump})\n#{beginning}#{code}"
    program = fresh ? Program.ruby(code, env: env) : ForkedProgram.ruby(server, code, env: env)
    assert_predicate program.wait, :success?, program.log
    program.log.lines(chomp: true)
  ensure
    program&.close
  end

  def test_the_job_and_the_data_are_stored_together
    assert_equal ["[[1], 1]", "[[1], 1]", "[[1, 3], 2]"], run_program(<<~'RUBY')
      Note.transaction { on.perform_async(Note.create!(text: "a").id) }
      tell enqueued, Note.count
      Note.transaction { on.perform_async(Note.create!(text: "b").id); raise ActiveRecord::Rollback }
      tell enqueued, Note.count
      error_of { Note.transaction { on.perform_async(2); raise "no" } }
      Note.transaction { on.perform_bulk([[3]]); Note.create!(text: "c") }
      tell enqueued, Note.count
    RUBY
  end

  # Without another statement in it, which Active Record begins a transaction for.
  def test_parts_of_a_transaction
    assert_equal ["[1, 2, 4]", "[\"token\"]", "nil"], run_program(<<~'RUBY')
      Note.transaction do
        on.perform_async(1)
        Note.transaction(requires_new: true) { on.perform_async(2) }
        Note.transaction(requires_new: true) { on.perform_async(3); raise ActiveRecord::Rollback }
        on.perform_async(4)
      end
      puts enqueued.inspect
      unique = on.set(unique_for: 60, unique_token: "token")
      Note.transaction { unique.perform_async(5); raise ActiveRecord::Rollback }
      Note.transaction { tell "token" if unique.perform_async(6) }
      puts unique.perform_async(7).inspect
    RUBY
  end

  # As soon as it is committed, and not before.
  def test_workers_are_woken_by_the_commit
    assert_equal ["[[]]", "[[[\"default\"]]]", "[[[\"default\"]]]"], run_program(<<~'RUBY')
      Jobs.storage.stats
      $rung = []
      bells = Jobs.storage.send(:engine).bells
      bells.singleton_class.prepend(Module.new { def ring(names) = $rung << names })
      Note.transaction { on.perform_async(1); tell $rung }
      tell $rung
      Note.transaction { on.perform_async(2); raise ActiveRecord::Rollback }
      tell $rung
    RUBY
  end

  def test_a_worker_of_its_own_runs_it
    run_program(%(Note.transaction { on.perform_async(Note.create!(text: "here").id) }))
    worker
    yield_until("it has run") { sleep(0.01) && File.exist?("#{@folder}/told") }
    assert_predicate @command.finish, :success?
    assert_equal "1 here\n", File.read("#{@folder}/told")
  end

  # Its children open the file anew.
  def test_a_supervisor_and_its_children
    run_program(%(Note.transaction { 6.times { on.perform_async(Note.create!(text: "here").id) } }))
    worker("", "--processes", "2")
    yield_until("all have run") { sleep(0.02) && processed == 6 }
    assert_predicate @command.finish, :success?
    assert_equal((1..6).map { |id| "#{id} here" }, File.readlines("#{@folder}/told", chomp: true).sort)
    assert_equal ['["ok", 0]'], run_program(<<~'RUBY', beginning: NEW + BEGINNING)
      tell connection.select_value("PRAGMA integrity_check"), Jobs.storage.stats[:in_flight]
    RUBY
  end

  def worker(more = "", *)
    File.write("#{@folder}/app.rb", NEW + BEGINNING + more)
    @command = ForkedCommand.new("-r", "./app.rb", "--storage", "sqlite:app.sqlite3", "-c", "5", *, server:, env:, chdir: @folder)
    @command.await(/the worker is ready/)
  end

  OWN = <<~'RUBY'
    class Own
      include Jobs::Job
      job_options retry: 0

      def perform(ending)
        Note.transaction do
          Note.create!(text: ending)
          done!(connection: Note.connection)
          raise "no" if ending == "raise"
          raise ActiveRecord::Rollback if ending == "rollback"
        end
        raise "late" if ending == "late"
      end
    end
  RUBY

  # Each note once, whatever ended how.
  def test_jobs_that_acknowledge_themselves
    run_program("#{OWN}%w[well raise rollback late].each { |ending| Own.perform_async(ending) }")
    worker(OWN)
    @command.await(/has raised RuntimeError: late after done!/)
    yield_until("all have ended") { sleep(0.02) && processed == 4 }
    assert_predicate @command.finish, :success?
    assert_equal ['[["late", "well"], 0, ["raise"]]'], run_program(<<~RUBY, beginning: NEW + BEGINNING)
      dead = Jobs.storage.scan(:dead, 0, 9).flat_map { |job| Jobs::Wire.parse(job.entry)["args"] }
      tell Note.order(:text).pluck(:text), Jobs.storage.stats[:in_flight], dead
    RUBY
    refute_match(/taken away/, @command.lines.join)
  end

  LATER = <<~'RUBY'
    require "ringspun/jobs/active_job"
    ActiveJob::Base.queue_adapter = :ringspun
    ActiveJob::Base.logger = Logger.new(nil)

    class Later < ActiveJob::Base
      class Again < StandardError; end
      retry_on Again, Jobs::TakenAwayError, wait: 0, attempts: 5

      def perform(ending)
        take_away if ending == "taken" && !File.exist?("taken")
        Note.transaction do
          Note.create!(text: "#{ending} #{executions}")
          done!(connection: Note.connection)
          raise Again if ending == "raise" && executions == 1
          raise ActiveRecord::Rollback if ending == "rollback"
        end
        raise Again, "late" if ending == "late"
      end

      def take_away
        sleep(0.01) until Jobs.storage.stats[:processed] == 5 # or the others would be taken away as well
        File.write("taken", "")
        Note.connection.exec_update("UPDATE ringspun_nodes SET lease = 0")
        Jobs.storage.recover(100)
      end
    end
  RUBY

  # What retry_on has enqueued anew though the job is done would have its effect twice.
  def test_jobs_of_active_job_that_acknowledge_themselves
    run_program("#{LATER}%w[well raise rollback late taken].each { |ending| Later.perform_later(ending) }")
    worker(LATER)
    @command.await(/has raised Later::Again: late after done!/)
    yield_until("all have ended") { sleep(0.02) && processed == 6 }
    assert_predicate @command.finish, :success?
    lines = run_program(<<~RUBY, beginning: "#{NEW}#{BEGINNING}#{LATER}")
      tell Note.order(:text).pluck(:text), *Jobs.storage.stats.values_at(:in_flight, :enqueued, :retries, :scheduled)
      Note.delete_all
      tell Later.perform_now("well"), Note.count
    RUBY
    assert_equal ['[["late 1", "raise 2", "taken 1", "well 1"], 0, 0, 0, 0]', "[nil, 1]"], lines
  end

  # Of a file that this process does not change.
  def processed
    require "extralite"
    file = Extralite::Database.new("#{@folder}/app.sqlite3")
    file.query_single_splat("SELECT processed FROM ringspun_state")
  ensure
    file&.close
  end

  # Whoever pushes with no connection would wait for himself.
  def test_what_is_enqueued_in_an_open_transaction_is_part_of_it
    assert_equal ["[[]]", "[[1, 2, 3, 4, 5]]"], run_program(<<~'RUBY')
      Note.transaction { Tell.perform_async(0); raise ActiveRecord::Rollback }
      tell enqueued
      Note.transaction do
        Tell.perform_async(1)
        Jobs.enqueue_all([[Tell, 2], [Tell, 3], [Tell.set(after_commit: true), 4]])
        Tell.perform_async(5)
      end
      tell enqueued
    RUBY
  end

  # A process that dies after the commit loses none. What waits for a second database waits for both.
  def test_what_waits_for_the_commit_of_this_database_alone_is_part_of_it
    inside = "connection.select_value('SELECT count(*) FROM ringspun_jobs')"
    assert_equal ["[3, [], true]", "[[], 0]", "[0, [5, 6]]", "[[5, 6]]"], run_program(<<~RUBY)
      class Other < ActiveRecord::Base
        establish_connection(adapter: "sqlite3", database: "other.sqlite3")
        connection.create_table(:others)
      end
      Jobs.storage.stats
      late = Tell.set(after_commit: true)
      Note.transaction do
        jid = late.perform_async(1)
        late.perform_bulk([[2], [3]])
        tell #{inside}, enqueued, !Jobs.storage.find(jid, connection: connection).nil?
        raise ActiveRecord::Rollback
      end
      tell enqueued, #{inside}
      Note.transaction do
        Other.transaction { late.perform_async(5); late.perform_bulk([[6]]); $waiting = #{inside} }
      end
      tell $waiting, enqueued
      Note.transaction { Other.transaction { late.perform_async(7); raise ActiveRecord::Rollback } }
      tell enqueued
    RUBY
  end

  # Rails runs each test in a transaction that nothing joins, on one connection for all threads.
  def test_transactions_of_tests
    assert_equal ["[[1, 2, 3, 4, 5]]", "[[], 0]"], run_program(<<~'RUBY')
      Jobs.storage.stats
      pool = ActiveRecord::Base.connection_pool
      pool.pin_connection!(true)
      Note.create!(text: "a")
      Tell.perform_async(1)
      Note.transaction { Tell.perform_async(2) }
      Tell.set(after_commit: true).perform_async(3)
      Note.transaction { Tell.set(after_commit: true).perform_async(4) }
      Thread.new { on.perform_async(5) }.join
      tell Jobs.storage.list("default", 0, 99, connection: connection).flat_map { |job| Jobs::Wire.parse(job.entry)["args"] }
      pool.unpin_connection!
      tell enqueued, Note.count
    RUBY
  end

  # Nobody else sees the tables before the commit, and whoever would make them waits for it.
  def test_the_first_job_of_all_is_enqueued_in_an_open_transaction
    assert_equal ["[[1, 2, 3]]"], run_program(<<~'RUBY')
      apart = Module.new do
        def read(...) = $open ? abort("it waits for itself") : super
        def write(...) = $open ? abort("it waits for itself") : super
      end
      Jobs.storage.send(:engine).singleton_class.prepend(apart)
      Note.transaction do
        $open = true
        on.perform_async(1)
        Tell.perform_bulk([[2], [3]])
        $open = false
      end
      tell enqueued
    RUBY
  end

  # A program that has not asked for the commit has no other way to say it.
  def test_what_active_job_enqueues_in_an_open_transaction_is_part_of_it
    assert_equal ["[0, 1]"], run_program(<<~'RUBY')
      require "ringspun/jobs/active_job"
      ActiveJob::Base.queue_adapter = :ringspun
      ActiveJob::Base.logger = Logger.new(nil)
      class Late < ActiveJob::Base
        def perform(*) = nil
      end
      sizes = [true, false].map do |back|
        Note.transaction do
          Late.perform_later(1)
          raise ActiveRecord::Rollback if back
        end
        enqueued.size
      end
      tell(*sizes)
    RUBY
  end

  def test_connections_of_the_gem_itself
    assert_equal ["[[1]]", "[:sqlite3]", "[0, 1]"], run_program(<<~'RUBY')
      Jobs.storage.stats
      own = SQLite3::Database.new("app.sqlite3", results_as_hash: true)
      own.busy_handler_timeout = 10_000
      own.transaction(:immediate) { Tell.set(connection: own).perform_async(1) }
      error_of { own.transaction(:immediate) { Tell.set(connection: own).perform_async(2); raise "no" } }
      tell enqueued
      tell Jobs.storage.send(:engine).library
      storage = Jobs.storage
      storage.extend(["n"], 60)
      fetched = storage.fetch("n", ["default"], 9)
      ack = Jobs::Storage::Ack.new("default", fetched[0].token, "j")
      own.transaction(:immediate) { storage.ack("n", [ack], connection: own) }
      tell(*storage.stats.values_at(:in_flight, :processed))
    RUBY
  end

  # It opens the file by that gem, also before Active Record has.
  def test_the_storage_uses_the_gem_of_the_program
    assert_equal ["[:sqlite3, false]", "[[1]]"], run_program(<<~'RUBY', beginning: NEW + BEGINNING, fresh: true)
      Jobs.storage.stats
      tell Jobs.storage.send(:engine).library, ActiveRecord::Base.connected?
      connection.create_table(:jobs) { |table| table.string :title }
      Note.transaction { on.perform_async(1) }
      tell enqueued
    RUBY
  end

  def test_a_file_of_jobs_alone_is_opened_by_the_other
    assert_equal ["[:extralite]", "[true]"], run_program(<<~'RUBY')
      Jobs.configure { |config| config.storage = "sqlite:#{Dir.pwd}/jobs.sqlite3" }
      Note.create!(text: "a")
      Tell.perform_async(1)
      tell Jobs.storage.send(:engine).library
      tell error_of { on.perform_async(2) }.match?(/is one to .*app.sqlite3, and jobs are kept in .*jobs.sqlite3/)
    RUBY
  end

  # Two copies of SQLite on one file.
  def test_a_mix_of_the_two_is_refused
    lines = run_program(<<~'RUBY')
      Jobs.configure { |config| config.storage = "sqlite:#{Dir.pwd}/jobs.sqlite3" }
      Tell.perform_async(1)
      other = SQLite3::Database.new("jobs.sqlite3")
      puts error_of { Tell.set(connection: other).perform_async(2) }
      Jobs.close
      mine = Extralite::Database.new("jobs.sqlite3")
      puts error_of { Tell.perform_async(3) }
      mine.close
      tell Tell.perform_async(4).nil?, Jobs.storage.send(:engine).library
    RUBY
    assert_match(/UsageError: .*of the gem sqlite3, and the storage has opened .* by extralite: .* library: :sqlite3/, lines[0])
    assert_match(/ConfigError: .* by the gem sqlite3 and by extralite, and two copies of SQLite drop each other's/, lines[1])
    assert_equal "[false, :sqlite3]", lines[2]
  end

  # After the storage has asked for its settings.
  def test_settings_of_active_record_that_come_later
    lines = run_program(<<~'RUBY')
      Jobs.configure { |config| config.storage = "sqlite:#{Dir.pwd}/jobs.sqlite3" }
      Tell.perform_async(1)
      class Late < ActiveRecord::Base
        establish_connection(adapter: "sqlite3", database: "jobs.sqlite3")
      end
      puts error_of { Late.connection.select_value("SELECT 1") }
      tell Note.count, enqueued
      Jobs.close
      tell Late.connection.select_value("SELECT count(*) FROM jobs"), enqueued, Jobs.storage.send(:engine).library
    RUBY
    assert_match(/ConfigError: this connection is one of the gem sqlite3, and the storage .* by extralite: .* library: :sqlite3/,
                 lines[0])
    assert_equal ["[0, [1]]", "[1, [1], :sqlite3]"], lines.drop(1)
  end

  # That of the tests' system, unless the gem has brought one along.
  def test_an_old_library_of_the_program_is_refused
    version, error, count = run_program(<<~'RUBY', beginning: BEGINNING + TABLE, fresh: true)
      puts SQLite3::SQLITE_LOADED_VERSION
      puts error_of { Note.transaction { on.perform_async(1) } }.inspect
      tell Note.count
    RUBY
    return assert_equal("nil", error) if Gem::Version.new(version) >= Gem::Version.new("3.51.3")

    assert_match(/ConfigError: .* has SQLite #{version}. Before 3.51.3 it can corrupt .*; run: bundle update sqlite3/, error)
    assert_equal "[0]", count
  end

  def test_what_every_storage_does
    folders = %w[runtime/test jobs/test].map { |folder| File.join(RailsApp::ROOT, folder) }
    code = %($LOAD_PATH.unshift(*#{folders})\nload "#{folders.last}/support/own_library_suite.rb")
    lines = run_program(code, beginning: "", fresh: true)
    assert_match(/\A1\d\d runs, .* 0 failures, 0 errors, 0 skips/, lines.grep(/ runs, /).first)
  end

  # Each strand has a connection of its own, as in Rails with us. One that pushes beside an open transaction waits for the other
  # one, and the other one for nobody.
  STRANDS = <<~'RUBY'
    $waits = nil
    Ringspun.run do |machine|
      opened = Ringspun::Channel.new(1)
      one = machine.spin do
        Note.transaction do
          Tell.perform_async(8)
          opened.push(connection)
          machine.sleep(0.01) until $waits&.state == :parked
          Tell.perform_async(9)
        end
      end
      theirs = opened.pop
      puts error_of { Tell.set(connection: theirs).perform_async(10) }
      $waits = machine.spin { Tell.perform_async(11) }
      [one, $waits].each(&:join)
    end
    tell enqueued
  RUBY

  # Each with a message that says what to do.
  def test_connections_on_which_no_job_can_be
    lines = run_program(<<~'RUBY' + STRANDS).grep_v(/inherited from a forked process/)
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      Jobs.storage.stats
      other = Thread.new { ActiveRecord::Base.connection_pool.checkout }.value
      puts error_of { Tell.set(connection: other).perform_async(1) }
      reading = SQLite3::Database.new("app.sqlite3", readonly: true)
      puts error_of { Tell.set(connection: reading).perform_async(2) }
      own = SQLite3::Database.new("app.sqlite3")
      own.close
      puts error_of { Tell.set(connection: own).perform_async(3) }
      ActiveRecord::Base.while_preventing_writes { puts error_of { Note.transaction { Tell.perform_async(4) } } }
      Note.transaction { on.perform_async(5) }
      mine = connection
      pid = fork do
        puts error_of { Tell.set(connection: mine).perform_async(6) }
        puts error_of { Note.transaction { Tell.set(connection: Note.connection).perform_async(7) } }.inspect
        $stdout.flush
        exit!
      end
      Process.wait(pid)
    RUBY
    expected = [/UsageError: .*in use by another thread or strand.*give that of this one/,
                /UsageError: .*it only reads.*give one that writes/, /UsageError: connection: is closed/,
                /UsageError: .*give one that writes: Write query attempted/,
                /UsageError: .*opened before this process was forked.*open one here/, /\Anil/,
                /UsageError: .*in use by another thread or strand/, /\A\[\[5, 7, 8, 9, 11\]\]/]
    assert_equal expected.size, lines.size, lines.inspect
    lines.zip(expected) { |line, one| assert_match(one, line) }
  end

  # What is in the other one is not in this.
  def test_a_file_that_was_renamed
    lines = run_program(<<~'RUBY')
      Note.transaction { on.perform_async(1) }
      File.rename("app.sqlite3", "old.sqlite3")
      puts error_of { Note.transaction { on.perform_async(2) } }
      File.write("app.sqlite3", "")
      puts error_of { Note.transaction { on.perform_async(3) } }
      %w[app.sqlite3-wal app.sqlite3-shm].each { |name| File.delete(name) }
      connection.disconnect!
      connection.create_table(:notes)
      Note.transaction { on.perform_async(4) }
      error_of { enqueued }
      tell enqueued
    RUBY
    2.times { |index| assert_match(/UnavailableError: .* was replaced or removed since .*open it anew/, lines[index]) }
    assert_equal "[[4]]", lines.last
  end

  # Active Record would set it with each connection, and wait for those of the storage.
  def test_a_mode_of_the_program_s_that_is_none_for_jobs
    settings = BEGINNING.sub("timeout: 10_000", "timeout: 10_000, pragmas: { journal_mode: :delete }")
    error, count = run_program(<<~'RUBY', beginning: NEW + settings + TABLE)
      puts error_of { Note.transaction { Note.create!(text: "a"); on.perform_async(1) } }
      tell Note.count
    RUBY
    assert_match(/ConfigError: .* have journal_mode: delete for .*app.sqlite3, and jobs there need WAL.*leave it out, or/, error)
    assert_equal "[0]", count
  end

  # Its connections wait for a lock in SQLite itself, which stops the thread of all strands, so also the one that has the lock.
  def test_a_rails_that_waits_in_the_library
    error, count = run_program(<<~'RUBY')
      puts error_of { Note.transaction { Note.create!(text: "a"); on.perform_async(1) } }
      tell Note.count
    RUBY
    assert_match(/ConfigError: Active Record 7.2.* for .*app.sqlite3.*use Rails 8.0 or give jobs a file of their own/, error)
    assert_equal "[0]", count
  end
  OLD = %w[test_a_rails_that_waits_in_the_library].freeze

  def self.runnable_methods = RailsApp::VERSION.to_f < 8 ? OLD : super - OLD

  # By Active Record, whose own statements count as well.
  def test_a_kill_between_any_two_statements
    lines = run_program(<<~'RUBY')
      Note.create!(text: "first")
      Jobs.storage.extend(["n"], 60)
      Tell.perform_async(1)
      fetched = Jobs.storage.fetch("n", ["default"], 1).first
      Note.transaction { on.perform_async(0) } # all that is cached is known
      Jobs.close
      ActiveRecord::Base.connection_handler.clear_all_connections!(:all)
      kept = File.binread("app.sqlite3")

      def state
        db = SQLite3::Database.new("app.sqlite3")
        [db.execute("PRAGMA integrity_check"), *%w[notes ringspun_jobs ringspun_ready ringspun_flight].map do |table|
          db.execute("SELECT count(*) FROM #{table}").flatten.first
        end]
      ensure
        db&.close
      end

      class Killer
        def initialize(left) = @left = left
        def start(*) = (@left -= 1).negative? && Process.kill(:KILL, Process.pid)
        def finish(*) = nil
      end

      def killed_at?(number)
        pid = fork do
          connection.verify!
          ActiveSupport::Notifications.subscribe("sql.active_record", Killer.new(number))
          yield
          exit!(true)
        end
        status = Process.wait2(pid).last
        status.signaled? || (status.success? ? false : abort("it has failed"))
      end

      ack = Jobs::Storage::Ack.new("default", fetched.token, "j")
      { set: -> { on.perform_async(2); on.perform_bulk([[3], [4]]) },
        done: -> { Jobs.storage.ack("n", [ack], connection: connection) } }.each do |name, work|
        before = state
        seen = []
        loop do
          Dir["app.sqlite3-{wal,shm}"].each { |path| File.delete(path) }
          File.binwrite("app.sqlite3", kept)
          killed = killed_at?(seen.size) { Note.transaction { Note.create!(text: "a"); work.call; Note.create!(text: "b") } }
          seen << state
          break unless killed
        end
        File.binwrite("app.sqlite3", kept)
        tell name, seen.size > 10, seen.first == before, seen.uniq.size, seen.last.zip(before).drop(1).map { |one, two| one - two }
      end
    RUBY
    assert_equal ["[:set, true, true, 2, [2, 3, 3, 0]]", "[:done, true, true, 2, [2, -1, 0, -1]]"], lines
  end

  # A dump of the schema is of the program's own tables.
  def test_a_schema_without_ours
    dump = run_program(<<~'RUBY').join("\n")
      Tell.perform_async(1)
      ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection_pool, $stdout)
    RUBY
    assert_match(/create_table "notes"/, dump)
    refute_match(/ringspun/, dump)
  end
end
