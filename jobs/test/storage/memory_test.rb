# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/storage_suite"

class MemoryStorageTest < Minitest::Test
  include StorageSuite

  def new_storage(**) = Storage::Memory.new(**)
end
