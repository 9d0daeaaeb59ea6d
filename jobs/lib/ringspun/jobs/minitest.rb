# frozen_string_literal: true

require "minitest"
require_relative "testing/assertions"

Minitest::Test.include(Ringspun::Jobs::Testing::Assertions)
