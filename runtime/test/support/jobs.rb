# frozen_string_literal: true

# All of the jobs, for tests that look at everything there is.

require "ringspun/jobs/active_job"
require "ringspun/jobs/cli"
require "ringspun/jobs/rspec"
require "ringspun/jobs/storage/sqlite"
require "ringspun/jobs/testing/assertions"
require "ringspun/jobs/web"

RSpec.configure { |config| config.expose_dsl_globally = false }
Ringspun::Jobs::Testing.real!
