# frozen_string_literal: true

require "support/rails_case"

# Jobs that wait for the commit: plain ones that say so, and those of Active Job.
module RailsTransactions
  # What is in the queue inside of the transaction, and then; the block gets the kind of job.
  def assert_enqueued(expected, code)
    { "PlainJob" => "perform_async", "LateJob" => "perform_later" }.each do |job, method|
      call("DEL", "queue:default")
      inside = app.run("@inside = nil; #{code.gsub("ENQUEUE", "#{job}.#{method}")}; @inside")
      assert_equal 0, inside, "#{job} in the transaction" if inside
      assert_equal expected, waiting, "#{job} after:\n#{code}"
    end
  end

  # The arguments of the jobs in the queue, of both kinds.
  def waiting = entries.flat_map { |entry| entry["wrapped"] ? entry["args"][0]["arguments"] : entry["args"] }

  LOOK = "@inside = Ringspun::Jobs.storage.stats[:queues].values.sum"

  def test_a_job_waits_for_the_commit
    assert_enqueued(%w[a b], "Note.transaction { ENQUEUE('a'); Note.create!(text: 'x'); ENQUEUE('b'); #{LOOK} }")
  end

  def test_without_a_transaction_it_does_not_wait
    assert_enqueued(%w[a], "ENQUEUE('a')")
  end

  def test_a_job_of_a_transaction_that_rolls_back_does_not_exist
    assert_enqueued([], "Note.transaction { Note.create!(text: 'x'); ENQUEUE('a'); #{LOOK}; raise ActiveRecord::Rollback }")
    assert_enqueued([], "begin; Note.transaction { ENQUEUE('a'); raise 'no' }; rescue; end; @inside = nil")
  end

  def test_savepoints
    assert_enqueued(%w[a b c], <<~'RUBY')
      Note.transaction { ENQUEUE('a'); Note.transaction(requires_new: true) { ENQUEUE('b') }; ENQUEUE('c') }
    RUBY
    assert_enqueued(%w[a c], <<~'RUBY')
      Note.transaction { ENQUEUE('a'); Note.transaction(requires_new: true) { ENQUEUE('b'); raise ActiveRecord::Rollback }; ENQUEUE('c') }
    RUBY
    assert_enqueued([], <<~'RUBY')
      Note.transaction { Note.transaction(requires_new: true) { ENQUEUE('a') }; raise ActiveRecord::Rollback }
    RUBY
  end

  def test_nested_transactions_are_one
    assert_enqueued(%w[a], "Note.transaction { Note.transaction { ENQUEUE('a') }; #{LOOK} }")
    assert_enqueued([], "Note.transaction { Note.transaction { ENQUEUE('a') }; raise ActiveRecord::Rollback }")
  end

  def test_two_databases
    assert_enqueued(%w[a], <<~RUBY)
      Note.transaction { Other.transaction { Note.create!(text: 'x'); Other.create!; ENQUEUE('a') }; #{LOOK} }
    RUBY
    assert_enqueued([], <<~'RUBY')
      Note.transaction { Other.transaction { Other.create!; ENQUEUE('a') }; raise ActiveRecord::Rollback }
    RUBY
    assert_enqueued([], <<~'RUBY')
      Note.transaction { Note.create!(text: 'x'); Other.transaction { ENQUEUE('a'); raise ActiveRecord::Rollback } }
    RUBY
  end

  def test_the_jid_is_given_at_once
    jid = app.run("Note.transaction { PlainJob.perform_async('a') }")
    assert_equal [jid], jids
  end

  def test_many_at_once
    jids = app.run(<<~RUBY)
      now = PlainJob.set(after_commit: false)
      Note.transaction do
        PlainJob.perform_bulk([["a"], ["b"]]) + Ringspun::Jobs.enqueue_all([[PlainJob, "c"], [now, "d"]]).tap { #{LOOK} }
      end
    RUBY
    assert_equal 1, app.run("@inside")
    assert_equal [jids[3], *jids.first(3)], self.jids
  end

  def test_many_of_active_job
    late = "ActiveJob.perform_all_later(LateJob.new('a'), TellJob.new('now'), LateJob.new('b'))"
    app.run("Note.transaction { #{late}; raise ActiveRecord::Rollback }; nil")
    assert_equal %w[now], waiting
    assert_equal 2, app.run("Note.transaction { #{late}; #{LOOK} }; @inside")
    assert_equal %w[now now a b], waiting
    known = app.run("Note.transaction { ActiveJob.perform_all_later(@job = LateJob.new('c')) }; @job.successfully_enqueued?")
    assert_equal true, known
    app.run("#{late}; nil")
    assert_equal %w[now now a b c], waiting.first(5)
    assert_equal %w[a b now], waiting.drop(5).sort
  end

  def test_the_setting_holds_for_jobs_that_say_nothing
    app.run(<<~'RUBY')
      class SaysNothing
        include Ringspun::Jobs::Job
      end
      Ringspun::Jobs.configure { |config| config.after_commit = true }
      Note.transaction { SaysNothing.perform_async; SaysNothing.set(after_commit: false).perform_async("now"); raise ActiveRecord::Rollback }
      Ringspun::Jobs.configure { |config| config.after_commit = false }
      nil
    RUBY
    assert_equal [["now"]], entries.map { |entry| entry["args"] }
  end

  # Rails 7.2 lets perform_later wait for the commit where nothing is said.
  def test_active_job_has_its_own_option
    app.run(<<~'RUBY')
      Ringspun::Jobs.configure { |config| config.after_commit = true }
      Note.transaction { TellJob.perform_later("a"); ActiveJob.perform_all_later(TellJob.new("b")); raise ActiveRecord::Rollback }
      Ringspun::Jobs.configure { |config| config.after_commit = false }
      nil
    RUBY
    assert_equal RailsApp::VERSION.to_f < 8 ? %w[b] : %w[a b], waiting
  end

  def test_a_transaction_around_that_nothing_joins
    inner = "Note.transaction { PlainJob.perform_async('a') }"
    assert_equal 1, app.run("Note.transaction(joinable: false) { #{inner}; #{LOOK} }; @inside")
  end

  def test_a_callback_that_raises_keeps_no_job_from_being_stored
    error = app.error_of(<<~'RUBY')
      raising = Class.new(ApplicationRecord) { self.table_name = "notes"; after_commit { raise "no" }; def self.name = "Raising" }
      raising.transaction do
        raising.create!(text: "x")
        PlainJob.perform_async("a")
        raising.transaction(requires_new: true) { PlainJob.perform_async("b") }
      end
    RUBY
    assert_equal "no", error["message"]
    assert_equal %w[a b], waiting
  end

  # The storage fails once.
  FAIL = <<~'RUBY'
    def (Ringspun::Jobs.enqueuer).push_all(pushes, **)
      pushes[0].entry.include?('"a"') ? raise(Ringspun::Jobs::UnavailableError, "gone") : super
    end
  RUBY

  def test_what_is_not_stored_after_the_commit_is_told
    told = app.run(<<~RUBY)
      #{FAIL}
      begin
        Note.transaction do
          Note.transaction { PlainJob.perform_async("b") }
          Ringspun::Jobs.client.with(Elsewhere = Class.new { def push_all(*, **) = raise("broken") }.new, nil)
            .push(PlainJob.set.instance_variable_get(:@template), ["c"])
          @jid = PlainJob.perform_async("a")
          Note.transaction(requires_new: true) { PlainJob.perform_async("d") }
          PlainJob.perform_async("e")
        end
      rescue Ringspun::Jobs::BulkError => error
        [error.class.name, error.jobs.map(&:first), error.jobs.last.last == @jid, error.message.include?(@jid), error.cause.message,
         error.results.map(&:class).map(&:name)]
      end
    RUBY
    assert_equal ["Ringspun::Jobs::AfterCommitError", %w[PlainJob PlainJob], true, true, "broken",
                  %w[String RuntimeError Ringspun::Jobs::UnavailableError String String]], told
    assert_equal %w[b d e], waiting
  end

  # One of Active Job that is not stored keeps no other from being enqueued, and each is named.
  def test_what_active_job_has_let_wait_is_told
    told = app.run(<<~RUBY)
      #{FAIL}
      def (Ringspun::Jobs.enqueuer).push(push, **) = push.entry.include?('"a"') ? raise(Ringspun::Jobs::UnavailableError, "gone") : super
      begin
        Note.transaction do
          @jobs = %w[a b a].map { |text| LateJob.perform_later(text) }
          ActiveJob.perform_all_later(@many = [LateJob.new("a"), LateJob.new("b")])
          PlainJob.perform_async("c")
        end
      rescue Ringspun::Jobs::AfterCommitError => error
        [error.jobs.map(&:last) == [@jobs[0], @jobs[2], *@many].map(&:job_id), error.jobs.map(&:first).uniq, error.cause.message,
         (@jobs + @many).map(&:successfully_enqueued?)]
      end
    RUBY
    assert_equal [true, %w[LateJob], "gone", [false, true, false, false, false]], told
    assert_equal %w[b c], waiting
  end

  def test_what_active_job_has_let_wait_is_named_when_a_callback_raises
    error = app.run(<<~'RUBY')
      raising = Class.new(ApplicationRecord) { self.table_name = "notes"; after_commit { raise "no" }; def self.name = "Raising" }
      begin
        raising.transaction { raising.create!(text: "x"); @job = LateJob.perform_later("a") }
      rescue Ringspun::Jobs::AfterCommitError => error
        [error.jobs == [["LateJob", @job.job_id]], error.cause.message, error.message]
      end
    RUBY
    assert_equal [true, "no"], error.first(2)
    assert_match(/the transaction is committed, but this job is not stored, or not for certain: LateJob \S+: no/, error.last)
    assert_empty waiting
  end

  def test_jobs_that_another_adapter_enqueues_are_not_named
    error = app.error_of(<<~'RUBY')
      raising = Class.new(ApplicationRecord) { self.table_name = "notes"; after_commit { raise "no" }; def self.name = "Raising" }
      unless defined?(Inline)
        Object.const_set(:Inline, Class.new(LateJob) { self.queue_adapter = :inline; def perform(*) = nil })
      end
      raising.transaction do
        Inline.perform_later("a")
        ActiveJob.perform_all_later(Inline.new("b"))
        raising.create!(text: "x")
      end
    RUBY
    assert_equal "no", error["message"]
  end

  def test_many_that_wait_go_in_several_calls
    sizes = app.run(<<~'RUBY')
      sizes = []
      Ringspun::Jobs.enqueuer.define_singleton_method(:push_all) { |pushes, **options| sizes << pushes.size; super(pushes, **options) }
      Note.transaction { PlainJob.perform_bulk(Array.new(2500) { ["a"] }) }
      sizes
    RUBY
    assert_equal [1000, 1000, 500], sizes
  end

  def test_an_error_of_those_that_do_not_wait
    told = app.run(<<~RUBY)
      #{FAIL}
      Note.transaction do
        Ringspun::Jobs.enqueue_all([[PlainJob, "b"], [PlainJob.set(after_commit: false), "a"]])
      rescue Ringspun::Jobs::BulkError => error
        error.results.map { |result| result.class.name }
      end
    RUBY
    assert_equal %w[String Ringspun::Jobs::UnavailableError], told
    assert_equal %w[b], waiting
  end

  def test_settings_that_change_before_the_commit
    app.run("Note.transaction { PlainJob.perform_async('a'); Ringspun::Jobs.configure {} }; nil")
    assert_equal %w[a], waiting
  end

  def test_a_strand_that_is_cancelled_while_it_stores_jobs
    app.run(<<~'RUBY')
      Ringspun.run do
        Ringspun.scope do |scope|
          Ringspun::Jobs.enqueuer.define_singleton_method(:push_all) { |*pushes, **options| scope.cancel; super(*pushes, **options) }
          scope.spin { Note.transaction { PlainJob.perform_async("a") } }
        end
      end
      nil
    RUBY
    assert_equal %w[a], waiting
  end

  def test_a_commit_that_is_interrupted
    told = app.run(<<~'RUBY')
      Ringspun::Jobs.config.logger = Logger.new(text = StringIO.new)
      begin
        Note.transaction do
          @jid = PlainJob.perform_async("a")
          Note.create!(text: "x")
          def (Note.connection).commit_db_transaction = raise(Timeout::Error, "late")
        end
      rescue => error
        [error.class.name, text.string.include?("PlainJob #{@jid}")]
      ensure
        Ringspun::Jobs.config.logger = Logger.new(nil)
        Note.connection_pool.disconnect!
      end
    RUBY
    assert_equal ["Timeout::Error", true], told
    assert_empty entries
  end

  # A COMMIT whose answer is lost, as the adapter tells of it.
  IN_DOUBT = <<~'RUBY'
    begin
      Note.transaction { Note.create!(text: "x"); @ids = [PlainJob.perform_async("a"), LateJob.perform_later("b").job_id]; ARM }
    rescue => error
      [error.class.name, error.is_a?(ActiveRecord::ConnectionFailed), error.jobs == [["PlainJob", @ids[0]], ["LateJob", @ids[1]]],
       @ids.all? { |id| error.message.include?(id) }]
    end
  RUBY
  TOLD = ["Ringspun::Jobs::CommitUnknownError", true, true, true].freeze

  def test_a_commit_in_doubt_is_told_with_the_jobs_that_are_not_enqueued
    arm = "def (Note.connection).commit_db_transaction = raise(ActiveRecord::ConnectionFailed, 'lost')"
    assert_equal TOLD, app.run(IN_DOUBT.sub("ARM", arm))
    assert_empty entries
    app.run("Note.connection_pool.disconnect!; nil")
    assert_enqueued(%w[a], "Note.transaction { ENQUEUE('a') }")
  end
end

class RailsTransactionsOnSQLiteTest < RailsCase
  include RailsTransactions
end

class RailsTransactionsOnPostgresTest < RailsCase
  include RailsPostgres
  include RailsTransactions

  # Active Record calls nobody back for a transaction that is gone with its session.
  def test_a_transaction_that_is_lost_before_its_commit
    lost = app.run(<<~'RUBY')
      begin
        Note.transaction do
          PlainJob.perform_async("old")
          Note.connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        end
      rescue => error
        [error.is_a?(ActiveRecord::StatementInvalid), error.is_a?(Ringspun::Jobs::CommitUnknownError)]
      end
    RUBY
    assert_equal [true, false], lost, "it is certain that this is not committed"
    arm = "def (Note.connection).commit_db_transaction = raise(ActiveRecord::ConnectionFailed, 'lost')"
    assert_equal TOLD, app.run(IN_DOUBT.sub("ARM", arm)), "without the one that is gone"
    app.run("Note.connection_pool.disconnect!; nil")
    assert_empty entries
  end

  def test_a_failed_statement_has_the_server_roll_back
    app.run(<<~'RUBY')
      Note.transaction { PlainJob.perform_async("a"); begin; Note.connection.execute("nonsense"); rescue ActiveRecord::StatementInvalid; end }
      nil
    RUBY
    assert_empty entries
  end

  # The proxy takes the answer, and the connection with it.
  def test_a_connection_that_is_cut_during_the_commit
    proxy = opened(Proxy.new { UNIXSocket.new("#{Servers.postgres_endpoint.folder}/.s.PGSQL.5432") })
    app.run("Note.establish_connection('postgresql://ringspun@127.0.0.1:#{proxy.port}/rails_one'); Note.count; nil")
    answer = Thread.new { app.run(IN_DOUBT.sub("ARM", "Seen << 'ready'; Seen.wait")) }
    assert_equal ["ready"], seen
    proxy.swallow
    call("RPUSH", "go", "1")
    assert_equal TOLD, answer.value
    assert_empty entries
    assert_equal 1, app.run("Note.remove_connection; Note.count"), "it was committed, which nobody could know"
  end
end
