# frozen_string_literal: true

# Every test of the jobs starts from here, with what stands around each of the runtime's: nothing is left over, nothing hangs.
require_relative "../../runtime/test/test_helper"
require_relative "../../runtime/test/support/strands"

require "ringspun/jobs"

# No test keeps jobs where it has not said: what a program gets that says nothing has tests of its own, which take this away.
ENV["RINGSPUN_JOBS_DIR"] = "/nowhere/no-test-has-said-where"
