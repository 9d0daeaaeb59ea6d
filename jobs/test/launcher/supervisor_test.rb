# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/launcher/supervisor"
require "stringio"

# What a supervisor does by itself. How it gets along with its processes is in cli/executable_test.rb.
class SupervisorTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs

  def new_supervisor(logger = Logger.new(nil), **) = Jobs.const_get(:Supervisor).new(Jobs::Config.new, Jobs::Log.new(logger), **)

  # Whatever it is: its workers would drain, for it would end.
  def test_a_signal_whose_work_raises_ends_it_not
    lines = StringIO.new
    supervisor = new_supervisor(Logger.new(lines), reload: ->(_log) { raise SystemStackError, "too deep" })
    supervisor.__send__(:obey, :HUP)
    assert_match(/ERROR .*error=SystemStackError .*SIGHUP was not obeyed: too deep/, lines.string)
  end

  # Its workers would drain, for it would end.
  def test_a_tree_that_cannot_be_printed_ends_it_not
    closed = StringIO.new.tap(&:close)
    Ringspun.run do
      supervisor = new_supervisor
      $stderr, before = closed, $stderr
      assert_empty supervisor.__send__(:obey, :TTIN)
    ensure
      $stderr = before if before
    end
  end
end
