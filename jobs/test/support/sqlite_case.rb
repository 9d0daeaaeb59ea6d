# frozen_string_literal: true

require "ringspun/jobs/storage/sqlite"
require "tmpdir"
require_relative "../../../runtime/test/support/share_of_the_day"

# Storages in files of a folder of the test's own.
class SqliteCase < Minitest::Test
  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage
  Sqlite = Storage::Sqlite

  NODE = "host:1:aa"

  # Where each job is; who has it.
  PLACES = <<~SQL
    SELECT json_extract(entry, '$.jid'), place FROM jobs JOIN (
      SELECT job, 'queue ' || (SELECT name FROM queues WHERE id = queue) AS place FROM ready
      UNION ALL SELECT job, 'set ' || kind FROM sets
      UNION ALL SELECT job, 'done' FROM done
      UNION ALL SELECT job, 'flight ' || (SELECT name FROM nodes WHERE id = node) FROM flight) ON job = jobs.id ORDER BY 1, 2
  SQL

  def setup
    super
    Sqlite.const_get(:Library).load # which a storage loads when it is made
    folder # at once: where Ruby lets others go on while one is made, each of two strands would make one
  end

  def teardown
    @opened&.each(&:close)
    FileUtils.remove_entry(@folder) if @folder
    Sqlite.const_get(:Guard).sweep
    super
  end

  def folder = @folder ||= Dir.mktmpdir("ringspun-sqlite-")

  def path = File.join(folder, "jobs.sqlite3")

  def storage = @storage ||= open_storage

  # Closed with the test.
  def open_storage(at = path, **) = Sqlite.new(at, **).tap { |one| (@opened ||= []) << one }

  def entry(jid, **fields)
    JSON.generate({ "class" => "Work", "args" => [], "jid" => jid, "queue" => "default", **fields.transform_keys(&:to_s) })
  end

  def push_of(jid, queue: "default", **) = Storage::Push.new(queue: queue, entry: entry(jid, queue: queue), jid: jid, **)

  def push(*jids, **) = storage.push(jids.map { |jid| push_of(jid, **) })

  def jids(all) = all.map { |one| JSON.parse(one.entry)["jid"] }

  # Writes over a page in the middle of the file.
  def damage
    File.open(path, "r+b") do |file|
      file.seek(file.size / 2)
      file.write("\0" * 4096)
    end
  end

  # What SQLite says of a file, by a connection of the test's.
  def query(sql, at = path)
    connection = Extralite::Database.new(at)
    connection.busy_timeout = 10
    connection.query_array(sql)
  ensure
    connection&.close
  end

  # @return [Array<Array(String, String)>] each job and where it is, in a file that is whole
  def places
    checked = Sqlite.new(path)
    assert_empty checked.check
    query(PLACES)
  ensure
    checked.close
  end

  # What is tried at each of many points: by day a tenth of them.
  #
  # @return [Enumerator<Integer>] their numbers, without an end
  def points_of_the_day = ShareOfTheDay.new(10).then { |share| share.first.step(by: share.step) }

  # A process that tells whether the block has ended well, unless it is killed. It collects nothing, for that would copy each page
  # that it shares with this process, and a collection is most of what a short child costs.
  def forked
    fork do
      GC.disable
      yield
      exit!(0)
    rescue Exception => error
      warn error.full_message
      exit!(1)
    end
  end

  def status_of(pid) = Process.wait2(pid).last
end
