# frozen_string_literal: true

require "test_helper"
require "support/apart"

# What `require "ringspun/core_ext"` adds to Kernel and IO.
class CoreExtTest < Minitest::Test
  FOLDER = "core_ext"
  include Apart

  def test_without_it_nothing_is_added
    answer = ruby_child(<<~RUBY)
      require "ringspun"
      names = %i[concurrently concurrent_proc wait await_resume! await_fastest]
      p names.select { |name| Object.private_method_defined?(name) }
      p (IO.instance_methods.grep(/await|concurrently/))
      p IO.instance_method(:close).owner
    RUBY
    assert_equal ["[]\n[]\nIO\n", ""], [answer.out, answer.err]
  end
end
