# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/storage_suite/outages"

# A process with jobs in its memory that was stopped for longer than a lease.
class MemoryOutageTest < Minitest::Test
  include AnyBackend
  include StorageSuite::Outages

  Storage = Ringspun::Jobs::Storage
  NODE = StorageSuite::NODE
  OTHER = StorageSuite::OTHER

  def setup
    super
    @now = 1e9
  end

  def storage = @storage ||= Storage::Memory.new(clock: -> { @now += 0.01 })

  def pass(seconds) = @now += seconds
end
