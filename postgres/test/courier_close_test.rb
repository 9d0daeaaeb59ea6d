# frozen_string_literal: true

require "postgres_helper"

# What the courier has opened for other threads is closed by its thread, whenever these go.
# servers: all
class PostgresCourierCloseTest < Minitest::Test
  include OnPool
  include NoNames

  def sockets = Dir["/proc/self/fd/*"].filter_map { |path| File.readlink(path)[/socket.*/] if File.symlink?(path) }.sort

  # In the midst of which the thread of the courier stands still.
  def hold_up(courier)
    held = let_go = false
    strand = Thread.new { courier.call { (held = true) && (Thread.pass until let_go) } }
    Thread.pass until held
    yield
  ensure
    let_go = true
    strand.join
  end

  # Its user leaves when the courier takes nothing any more, and has not come to what it has to close.
  def test_a_connection_that_is_left_while_the_pool_is_closed
    before = sockets
    with_pool do |pool|
      entered, leave = Array.new(2) { Thread::Queue.new }
      user = Thread.new { pool.session { entered << true && leave.pop } }
      entered.pop
      courier = pool.__send__(:courier)
      closing = nil
      hold_up(courier) do
        closing = Thread.new { pool.close }
        Thread.pass until courier.instance_variable_get(:@errands).closed?
        leave << :left
        assert_equal :left, user.value
      end
      closing.join
    end
    assert_equal before, sockets
  end
end
