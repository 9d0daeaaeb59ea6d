# frozen_string_literal: true

# Not in one file with what it is for, which `ringspun` requires itself: neither must be required while it is loaded.
require "ringspun"
require_relative "rails_isolation"
