# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/launcher/lifeline"

class LifelineTest < Minitest::Test
  # A pipe that gives what the test says, and then is at its end.
  Line = Struct.new(:reads) do
    def wait_readable(_seconds) = self
    def read_nonblock(*, **) = reads.shift
  end

  def test_a_line_that_was_readable_and_has_nothing
    hurried = 0
    lifeline = Ringspun::Jobs.const_get(:Lifeline).new(Line.new([:wait_readable, "b", :wait_readable, "bh"]), "node",
                                                       Ringspun::Jobs::Config.new, Ringspun::Jobs::Storage::Memory.new, nil,
                                                       hurry: -> { hurried += 1 }) { Thread.exit }
    lifeline.watch.tap { |thread| thread.report_on_exception = false }.join
    assert_equal 1, hurried
  end
end
