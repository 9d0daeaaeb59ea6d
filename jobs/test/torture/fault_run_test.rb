# frozen_string_literal: true

require "jobs_helper"
require "torture/fault_run_suite"
require "torture/redis_fault_run"

class FaultRunTest < Minitest::Test
  include AnyBackend
  include FaultRunSuite

  def fault_run(**) = RedisFaultRun.new(seconds: seconds(8), **)
end
