# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/storage/sqlite"
require_relative "../support/storage_suite"
require "tmpdir"

class SqliteStorageTest < Minitest::Test
  include StorageSuite

  # At once: where Ruby lets others go on while a folder is made, each of two strands would make one.
  def setup
    super
    @folder = Dir.mktmpdir("ringspun-sqlite")
    storage
  end

  def new_storage(**) = Storage::Sqlite.new(File.join(@folder, "jobs.sqlite3"), **)

  # The tables are there, for whoever reads while they are made waits for them.
  def callers_connection
    storage.stats
    Extralite::Database.new(storage.path)
  end

  def teardown
    super
    FileUtils.remove_entry(@folder)
  end
end
