# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/on_scripted_pool"
require "support/scripted_server/copying"

# Two strands that ask one session at once, and both wait for its BEGIN, or for what the columns are: one streams, and the other
# gets its own answer or hears so. A stream whose portal or place another one takes would mix their rows.
class StreamsAtOnceTest < Minitest::Test
  include OnScriptedPool

  def server_class = CopyingServer

  ASKED = {
    stream: lambda do |client, machine, nonce|
      rows = []
      client.stream("rows $1, $2", nonce, 1200, as: :array) { |row| (rows << row) && rows.size == 600 && machine.sleep(0.1) }
      assert_equal Array.new(1200) { |number| [nonce, number.to_s] }, rows
    end,
    copy_out: ->(client, _, _) { assert_equal %w[0 1 2], client.copy_out("copy t (a) to stdout").to_a.flatten },
    copy_in: lambda do |client, machine, nonce|
      assert_equal 1, client.copy_in("copy t (a) from stdin") { |copy| machine.sleep(0.1) && copy << [nonce] }
    end,
    query: ->(client, _, nonce) { assert_equal nonce, client.query_value("echo $1", nonce) },
    batch: ->(client, _, nonce) { assert_equal nonce, client.batch { |batch| batch.query("echo $1", nonce) }.first.value }
  }.freeze

  # @return [Boolean] whether it was answered
  def answered?(ask, *)
    instance_exec(*, &ask)
    true
  rescue Ringspun::UsageError => error
    assert_match(/this session is in the midst of a (stream|COPY)/, error.message)
    false
  end

  # A BEGIN has not been answered when both begin, nor what any statement is.
  PLACES = {
    session: :session.to_proc,
    transaction: :transaction.to_proc,
    transaction_that_has_begun: ->(pool, &block) { pool.transaction { |t| t.query("echo $1", "x") && block.call(t) } }
  }.freeze

  PLACES.each do |name, own|
    define_method("test_two_of_a_#{name}") do
      ASKED.keys.product(ASKED.keys).each do |pair|
        on_pool(max: 1) do |pool, machine|
          own.call(pool) do |client|
            strands = pair.map.with_index { |kind, at| machine.spin { answered?(ASKED[kind], client, machine, "n#{at}") } }
            assert_includes strands.map(&:await), true, pair
          end
          assert_equal "own", pool.session { |session| session.query_value("echo $1", "own") }
        end
      end
    end
  end
end
