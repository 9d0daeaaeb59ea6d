# frozen_string_literal: true

# A program of jobs/test/rails/own_file_test.rb: what every storage does, by a file that is opened by the gem sqlite3.

require "extralite" # whose SQLite that gem has then, see there
require "sqlite3"
require "jobs_helper"
require "ringspun/jobs/storage/sqlite"
require_relative "storage_suite"
require "tmpdir"

class OwnLibraryStorageTest < Minitest::Test
  include StorageSuite

  # At once: where Ruby lets others go on while a folder is made, each of two strands would make one.
  def setup
    super
    @folder = Dir.mktmpdir("ringspun-sqlite")
    storage
  end

  def new_storage(**) = Storage::Sqlite.new(File.join(@folder, "app.sqlite3"), library: :sqlite3, **)

  def callers_connection
    storage.stats
    SQLite3::Database.new(storage.path)
  end

  def teardown
    super
    FileUtils.remove_entry(@folder)
  end
end
