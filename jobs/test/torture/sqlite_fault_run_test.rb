# frozen_string_literal: true

require "jobs_helper"
require "torture/fault_run_suite"
require "torture/sqlite_fault_run"

# rubies: one

class SqliteFaultRunTest < Minitest::Test
  include AnyBackend
  include FaultRunSuite

  def fault_run(**) = SqliteFaultRun.new(seconds: seconds(30), **)
end
