# frozen_string_literal: true

# What the Ruby has loaded from which programs of jobs/test/rails/own_file_test.rb are forked. That says why extralite is first.

require "extralite"
require "sqlite3"
require "active_record"
require "active_record/connection_adapters/sqlite3_adapter"
require "ringspun/jobs/active_record"
ActiveRecord.eager_load!
