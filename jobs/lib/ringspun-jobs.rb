# frozen_string_literal: true

require "ringspun/jobs"
require "ringspun/jobs/railtie" if defined?(Rails::Railtie)
