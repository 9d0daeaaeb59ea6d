# frozen_string_literal: true

require "postgres_helper"

# What a forked child has, and that it leaves alone what is its parent's.
# servers: all
class PostgresForkTest < Minitest::Test
  include OnPool
  include NoNames

  LANE = Postgres.const_get(:Lane)

  def in_a_strand = on_pool { |pool| with_table(pool) { |table| yield pool, table } }

  def in_the_main_program
    pool = pool()
    with_table(pool) { |table| yield pool, table }
  ensure
    pool.close if Process.pid == @parent
  end

  def in_a_thread
    in_the_main_program do |*all|
      Thread.new { yield(*all) }.tap { |thread| thread.report_on_exception = false }.value
    end
  end

  def setup = @parent = Process.pid

  # How a child may leave what it is in the midst of, and what it hears there.
  WAYS = {
    returns: [->(_) { nil }, :lost],
    asks: [->(t) { t.query("select 1") }, :lost],
    sends_a_batch: [->(t) { t.batch { |batch| batch.query("select 1") } }, :lost],
    streams: [->(t) { t.stream("select 1") { |_| nil } }, :lost],
    begins_a_savepoint: [->(t) { t.transaction { |_| nil } }, :lost],
    throws: [->(_) { throw :out, :thrown }, :thrown],
    raises: [->(_) { raise Ringspun::TimeoutError, "mine" }, :mine]
  }.freeze

  %i[in_a_strand in_the_main_program in_a_thread].product(WAYS.to_a) do |place, (way, (leave, heard))|
    define_method("test_in_a_transaction_the_child_#{way}_#{place}") do
      __send__(place) { |pool, table| assert_parents_own(pool, table, leave, heard) }
    end
  end

  def test_in_a_session_and_a_savepoint
    in_a_strand do |pool, table|
      assert_parents_own(pool, table, WAYS[:throws].first, :thrown) do |&work|
        pool.session { |session| session.transaction { |outer| outer.transaction(&work) } }
      end
    end
  end

  def test_in_the_midst_of_a_stream
    %i[in_a_strand in_the_main_program in_a_thread].each do |place|
      __send__(place) { |pool, _| assert_equal (1..5000).to_a, stream_on(pool) }
    end
  end

  # What others wait for is neither read nor sent a second time.
  def test_while_others_wait
    on_pool(lanes: 1) do |pool, machine|
      with_table(pool) do |table|
        waiting = pool.transaction do |t|
          t.query("select pg_advisory_xact_lock(19)")
          locked = machine.spin { pool.query_value("select 7 where pg_advisory_xact_lock(19)::text = ''") }
          await(machine) { look { |other| running(other) }.any?(/xact_lock/) }
          unsent = machine.spin { pool.execute("insert into #{table} values (1)") }
          machine.yield
          assert_child { assert_equal 2, pool.session { |s| s.query_value("select 2") } }
          [locked, unsent]
        end
        assert_equal [7, 1], machine.await(*waiting)
        assert_equal [1], ids(pool, table)
      end
    end
  end

  # Not even by what pools end connections of other threads with, which closes the descriptor under its stream.
  def test_a_connection_of_the_parents_is_not_closed_in_a_child
    on_pool(lanes: 1) do |pool|
      assert_equal 1, pool.query_value("select 1")
      GC.disable # it would close the files of other tests
      before = Leaks.descriptors
      assert_child do
        inherited = Leaks.descriptors
        ObjectSpace.each_object(LANE) { |lane| [false, true].each { |gone| lane.abandon("it is not ours", gone) } }
        assert_equal inherited, Leaks.descriptors
      end
      assert_equal [1, before], [pool.query_value("select 1"), Leaks.descriptors]
    end
  ensure
    GC.enable
  end

  SCRIPT = <<~'RUBY'
    $LOAD_PATH.unshift(ARGV.shift)
    require "ringspun/postgres"
    $stdout.sync = true
    pool = Ringspun::Postgres.connect(ARGV.shift)
    connections = lambda do
      [pool.query_value("select 1"), pool.session { |session| session.query_value("select 1") }]
      Dir["/proc/self/fd/*"].filter_map { |path| File.readlink(path)[/socket.*/] if File.symlink?(path) }.sort
    end
    before = connections.call
  RUBY

  # With all that Ruby does when a process ends.
  def test_the_end_of_a_child_says_nothing_to_the_parents_server
    assert_script "2\ntrue\ntrue\n", <<~'RUBY'
      Process.wait(fork { puts (connections.call - before).size })
      Process.wait(fork { puts (connections.call - before).size == 2 && pool.close.nil? })
      Process.wait(fork { GC.start })
      puts before == connections.call
      pool.close
    RUBY
  end

  def test_a_daemon_begins_anew
    assert_script "2\n", <<~'RUBY'
      Process.daemon(true, true)
      puts (connections.call - before).size
    RUBY
  end

  private

  def assert_child(&) = assert_predicate(in_child(&), :success?)

  def assert_end(pid) = assert_predicate(wait_for(pid, 30) { flunk "the child does not end" }, :success?)

  # The child gets what had come before, and then hears that the rest is not for it.
  def stream_on(pool)
    numbers = pool.stream("select generate_series(1, 5000)", as: :array).map do |(number)|
      pid = fork if number == 10
      assert_end(pid) if pid
      number
    end
    leave_child(false) unless Process.pid == @parent
    numbers
  rescue Postgres::ConnectionLost
    raise if Process.pid == @parent

    leave_child(true)
  end

  # In a transaction, whose child leaves it in that way and then asks for itself.
  def assert_parents_own(pool, table, leave, heard, &transaction)
    transaction ||= ->(&work) { pool.transaction(&work) }
    outcome = catch(:out) do
      transaction.call { |t| share(t, table, leave) }
    rescue Postgres::ConnectionLost, Ringspun::TimeoutError => error
      raise if Process.pid == @parent

      error.message == "mine" ? :mine : (error.in_doubt? || :lost)
    end
    leave_child(outcome == heard && ids(pool, table).empty?) unless Process.pid == @parent
    assert_equal [:committed, [1, 2]], [outcome, ids(pool, table)]
  end

  def share(transaction, table, leave)
    transaction.execute("insert into #{table} values (1)")
    pid = fork
    return leave.call(transaction) unless pid

    assert_end(pid)
    transaction.execute("insert into #{table} values (2)")
    :committed
  end

  def assert_script(expected, code)
    answer = ruby_child(SCRIPT + code, File.expand_path("../lib", __dir__), url)
    assert_equal [expected, "", true], [answer.out, answer.err, answer.status.success?]
  end
end
