# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::TablesTest < Minitest::Test
  OF_CONCURRENT_PROCS = %w[call_methods calls_awaiting wait_methods call_methods_waiting waiting_evaluations].freeze

  def test_all_tables_are_there_in_the_order_of_the_report
    assert_equal %w[pipe socketpair mutex_cpu mutex_io queue select channel switch timeout spawn beside_cpu
                    parked echo armed accept files timers idle batch call_methods calls_awaiting wait_methods
                    call_methods_waiting waiting_evaluations http tls tls_echo keep_alive pg lines idle_streams splice_forwarder],
                 BenchTest.tables.map(&:name)
  end

  def test_every_table_has_all_contenders_and_says_what_it_does
    (BenchTest.tables - of_concurrent_procs).each do |table|
      peers = table.name == "batch" ? [] : %w[threads async]
      peers << "io-stream" if %w[echo lines idle_streams].include?(table.name)
      peers << "eventmachine" if table.name == "echo"
      assert_equal peers, table.peers.map(&:name) - %w[uringmachine], table.name
      ours = ["ringspun", "ringspun epoll", "ringspun sqpoll"]
      ours.unshift("ringspun streams") if table.name == "echo"
      ours.unshift("ringspun fs") unless %w[batch http tls keep_alive pg idle_streams].include?(table.name)
      assert_equal ours, table.contenders.filter_map { _1.backend && _1.name }
      refute_empty table.about, table.name
    end
  end

  def test_concurrent_procs_are_beside_the_gem_and_the_drop_in
    of_concurrent_procs.each do |table|
      floor = table.name == "waiting_evaluations" ? "bare fiber" : "plain proc"
      assert_equal ["concurrently", "ringspun", "ringspun epoll", "drop-in", floor], table.contenders.map(&:name)
      assert_equal %w[concurrently], table.peers.map(&:name)
      refute_empty table.about, table.name
      assert_empty %i[rate gc_rate objects] - table.columns, table.name
    end
  end

  def test_uring_promises_no_more_than_a_tenth_above_epoll_everywhere
    stricter = %w[armed accept]
    BenchTest.tables.each do |table|
      promise = /\A(?:total|cpu_ns) <= #{stricter.include?(table.name) ? 0.8 : 1.1} x ringspun epoll(?: at armed)?\z/
      assert_equal 1, table.targets.map(&:sentence).grep(promise).size, table.name
    end
  end

  def test_every_floor_but_that_of_a_free_timeout_exists
    without = BenchTest.tables.reject(&:floor).map(&:name)
    assert_equal %w[timeout beside_cpu timers tls lines splice_forwarder], without
  end

  def test_the_promised_tables_show_system_calls
    assert_equal(%w[pipe socketpair timeout echo armed files batch],
                 BenchTest.tables.select { |table| table.syscalls && table.columns.include?(:syscalls) }.map(&:name))
  end

  # Real children, with the sizes of the warm-up: whether the work is done, not how fast.
  def test_peers_and_floors_do_their_work
    work { |table| table.contenders.reject(&:backend) }
  end

  def test_ringspun_does_its_work_on_each_backend
    skip "ringspun is not built" unless Bench::Sampler.new.probe["ringspun"].to_s.match?(/\A\d/)

    work { |table| table.contenders.select(&:backend) }
  end

  private

  def of_concurrent_procs = BenchTest.tables.select { |table| OF_CONCURRENT_PROCS.include?(table.name) }

  # Two at a time: most of it is the start of children.
  def work
    turns = Thread::Queue.new(BenchTest.tables.flat_map { |table| yield(table).map { |contender| [table, contender] } }).close
    complaints = Array.new(2) do
      Thread.new do
        found = []
        while (turn = turns.pop)
          found << complaint(*turn)
        end
        found.compact
      end
    end
    assert_empty complaints.flat_map(&:value)
  end

  def complaint(table, contender)
    size = table.warm_up_size(table.size_of(table.rows.first, contender)).merge(small(table))
    sample = Bench::Sampler.new(time_limit: 60.0).sample(table, contender, size)
    return if sample["real"] || sample["unavailable"]

    "#{table.name} #{contender.name}: #{sample["failed"]}"
  end

  # Spawning is warmed up at length; here it need not be.
  def small(table) = table.name == "spawn" ? { count: 100 } : {}
end
