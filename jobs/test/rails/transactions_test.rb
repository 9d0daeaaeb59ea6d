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
    # Before 8.1 Active Job does not let many wait.
    late = RailsApp::VERSION == "8.0" ? "[*jobs].each(&:enqueue)" : "ActiveJob.perform_all_later(*jobs)"
    late = "jobs = %w[a b].map { |text| LateJob.new(text) }; #{late}"
    app.run("Note.transaction { #{late}; raise ActiveRecord::Rollback }; nil")
    assert_empty entries
    app.run("Note.transaction { #{late} }; nil")
    assert_equal %w[a b], waiting
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
