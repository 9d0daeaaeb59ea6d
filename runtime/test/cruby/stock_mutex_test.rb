# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/strands"
require "tmpdir"

# How a runner learns that its fiber holds a stock Mutex: by a pointer in one Ruby, by a number in another.
class StockMutexTest < Minitest::Test
  include Strands

  SOURCE = File.expand_path("names.c", __dir__)
  EXTENSION = File.expand_path("../../ext/ringspun", __dir__)

  def test_the_name_of_an_owner_is_found_whatever_it_is
    Dir.mktmpdir do |folder|
      program = File.join(folder, "names")
      compiler = RbConfig::CONFIG["CC"].split.first
      flags = %W[-std=gnu11 -Wall -Wextra -Werror -I#{EXTENSION}]
      output, status = Open3.capture2e(compiler, *flags, "-o", program, SOURCE)
      assert_predicate status, :success?, output
      output, status = Open3.capture2e(program)
      assert_predicate status, :success?, output
    end
  end

  # Where this fails, the words were not found in this Ruby: see "A new Ruby" in docs/07-internals.md.
  def test_a_fiber_is_used_again_while_another_holds_a_mutex
    mutex = Thread::Mutex.new
    holder = machine.spin { mutex.synchronize { machine.park } }
    machine.yield until mutex.locked?
    assert_same(*Array.new(2) { machine.spin { Fiber.current }.await })
    machine.schedule(holder)
    holder.await
  end
end
