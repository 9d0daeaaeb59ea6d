# frozen_string_literal: true

require "test_helper"
require "support/preloaded"

# What other programs are to have stays as long as the tests run.
class PreloadedTest < Minitest::Test
  def test_a_child_that_ends_leaves_it_to_the_others
    library = Preloaded.library(File.expand_path("../strands/spinner.c", __dir__), "-pthread")
    _, status = Process.wait2(fork { exit })
    assert_equal [true, true], [status.success?, File.exist?(library)]
  end
end
