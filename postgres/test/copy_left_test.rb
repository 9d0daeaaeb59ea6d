# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"
require "support/scripted_server/copying"

# A COPY that is left at any time, and a server that says what it still has to say of it in any order: that it begins, that it was
# cancelled, that it is ready. The connection stays, and whoever comes next gets answers of its own.
class CopyLeftTest < Minitest::Test
  include OnScriptedPool

  IN = "copy t (a) from stdin"
  OUT = "copy t (a) to stdout"
  ROWS = [["1"], ["2"]].freeze

  def server_class = CopyingServer

  # Seconds until the server begins with a COPY, until it looks whether that is cancelled, and until a request to cancel comes to
  # it. The client goes after one second, and waits for a rollback for no more than five.
  ORDERS = [0, 1.1, 2.5].product([0, 0.5, 1.5], [0, 0.3, 1]).freeze

  LEFT = { in: ->(client, machine) { client.copy_in(IN, timeout: 1) { |copy| (copy << ["x"]) && machine.sleep(1000) } },
           out: ->(client, machine) { client.copy_out(OUT, timeout: 1) { machine.sleep(1000) } } }.freeze

  def in_each_order(copy)
    ORDERS.each do |begins, looks, cancels|
      on_pool(max: 1) do |pool, machine, server|
        times = { begin: begins, begun: looks, row: 0, cancel: cancels }
        server.pause = ->(what) { machine.sleep(times.fetch(what)) }
        yield pool, ->(client) { assert_raises(Ringspun::TimeoutError) { LEFT.fetch(copy).call(client, machine) } } # must pass
        times.transform_values! { 0 }
        assert_works(pool, server)
      rescue StandardError => error
        raise error.exception("begins: #{begins}, looks: #{looks}, cancels: #{cancels}: #{error.message}")
      end
    end
  end

  def assert_works(pool, server)
    assert_equal 2, pool.copy_in(IN, ROWS)
    assert_equal %w[0 1 2], pool.copy_out(OUT).to_a.flatten
    pool.session { |session| assert_equal "own", session.query_value("select echo $1", "own") }
    assert_equal %w[1 2], server.committed
    assert_equal [1, 1, 1], [server.backends.size, *pool.metrics.values_at(:connections, :idle)]
  end

  %i[in out].each do |copy|
    define_method("test_#{copy}_of_a_pool") { in_each_order(copy) { |pool, leave| leave.call(pool) } }

    define_method("test_#{copy}_of_a_session_that_goes_on") do
      in_each_order(copy) do |pool, leave|
        pool.session do |session|
          leave.call(session)
          assert_equal "own", session.query_value("select echo $1", "own")
        end
      end
    end

    define_method("test_#{copy}_of_a_savepoint_whose_transaction_goes_on") do
      in_each_order(copy) do |pool, leave|
        pool.transaction do |outer|
          outer.transaction { |inner| leave.call(inner) and raise KeyError }
        rescue KeyError
          assert_equal "own", outer.query_value("select echo $1", "own")
        end
      end
    end
  end
end
