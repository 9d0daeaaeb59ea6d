# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"

# A file system that has no room for bytes or for files, or that can only be read: in mounts of a process of the tests' own, which
# go with it. What was accepted stays, what is refused says what to do, and the same process goes on when there is room.
class SqliteRoomTest < SqliteCase
  OWN_MOUNTS = ["unshare", *("--map-root-user" unless Process.uid.zero?), "--mount"].freeze

  PRELUDE = <<~'RUBY'
    require "json"
    require "ringspun/jobs"
    require "ringspun/jobs/storage/sqlite"
    FOLDER, = ARGV
    NODE = "host:1:aa"
    SQLITE = Ringspun::Jobs::Storage::Sqlite

    def mount(options) = system("mount", "-t", "tmpfs", "-o", options, "none", FOLDER, exception: true)
    def mount_anew(options) = system("mount", "-o", "remount,#{options}", FOLDER, exception: true)
    def end_mount = system("umount", FOLDER, exception: true)
    def open_storage = @storage = SQLITE.new("#{FOLDER}/jobs.sqlite3")

    def push(jid)
      entry = JSON.generate({ "class" => "Work", "args" => [], "jid" => jid })
      (@storage || open_storage).push([Ringspun::Jobs::Storage::Push.new(queue: "default", entry: entry, jid: jid)])
      ACCEPTED << jid
    end

    ACCEPTED = []
    VERBS = { push: -> { push("p") }, fetch: -> { @storage.fetch(NODE, ["default"], 1) }, extend: -> { @storage.extend([NODE], 9) },
              ack: -> { ack(@storage.in_flight(NODE).first) }, recover: -> { @storage.recover(9) } }.freeze

    def ack(one)
      jid = JSON.parse(one.entry)["jid"]
      @storage.ack(NODE, [Ringspun::Jobs::Storage::Ack.new(queue: one.queue, token: one.token, jid: jid)]) && ACCEPTED.delete(jid)
    end

    # Each error that blocks have raised, by name and message, and how often.
    def told(*blocks)
      errors = blocks.map { |block| block.call && nil rescue "#{$!.class.name.split("::").last} #{$!.message.gsub(FOLDER, "")}" }
      errors.tally.each { |error, times| puts "#{times} #{error || "done"}" }
    end

    # Whether all that was accepted is there, and the file is whole.
    def judge
      there = @storage.list("default", 0, 999) + @storage.in_flight(NODE)
      jids = there.map { |one| JSON.parse(one.entry)["jid"] }
      puts jids.sort == ACCEPTED.sort && @storage.check.empty? ? "all is there" : "accepted #{ACCEPTED}, there #{jids}"
      @storage.close
      @storage = nil
      ACCEPTED.clear
      end_mount
    end
  RUBY

  def setup
    super
    skip "no mounts of its own are allowed here" unless system(*OWN_MOUNTS, "mount", "-t", "tmpfs", "none", folder,
                                                               %i[out err] => IO::NULL)
  end

  # @return [Array<String>] what the program has printed
  def in_own_mounts(code)
    command = [*OWN_MOUNTS, RbConfig.ruby, *Zygote::OPTIONS, *$LOAD_PATH.map { |one| "-I#{one}" }, "-e", PRELUDE + code, folder]
    answer = ruby_child("exec(*ARGV)", *command)
    assert_equal ["", true], [answer.err, answer.status.success?]
    answer.out.lines(chomp: true)
  end

  FULL = "StorageError /jobs.sqlite3: the disk is full, and nothing was done; make room, and the next call stores again"

  def test_a_full_disk_under_a_process_that_runs
    lines = in_own_mounts(<<~'RUBY')
      mount("size=1m")
      %w[a b c].each { |jid| push(jid) }
      @storage.fetch(NODE, ["default"], 1)
      File.write("#{FOLDER}/fill", "x" * (2 << 20)) rescue $!
      told(*VERBS.values)
      puts @storage.stats[:enqueued]
      File.unlink("#{FOLDER}/fill")
      told(*VERBS.values)
      judge
    RUBY
    assert_equal ["5 #{FULL}", "2", "5 done", "all is there"], lines
  end

  # The number of pages that are left decides which file finds no room: the locks, the database, the -shm or the -wal.
  def test_a_disk_without_room_for_a_new_file
    lines = in_own_mounts(<<~'RUBY')
      [0, 1, 2, 8, 9, 10, 20].each do |pages|
        mount("size=1m")
        File.write("#{FOLDER}/fill", "x" * ((256 - pages) << 12))
        told(-> { push("a") }, -> { @storage.stats }, -> { push("b") })
        File.unlink("#{FOLDER}/fill")
        told(-> { push("c") })
        judge
      end
    RUBY
    needs = "StorageError /jobs.sqlite3: disk I/O error, and nothing was done; it needs room on the disk for what is beside it"
    other = "UnavailableError /jobs.sqlite3 cannot be used: No space left on device"
    lines.each_slice(3) do |first, *rest|
      assert [FULL, needs, other].any? { |error| first.start_with?("3 #{error}") }, first
      assert_equal ["1 done", "all is there"], rest
    end
    assert_equal 21, lines.size
  end

  def test_a_disk_without_room_for_names
    lines = in_own_mounts(<<~'RUBY')
      (2..6).each do |names| # the folder's own is one
        mount("size=4m,nr_inodes=#{names}")
        told(-> { push("a") }, -> { @storage.wait_any(NODE, ["none"], 0) })
        mount_anew("nr_inodes=50")
        told(-> { push("c") }, -> { @storage.wait_any(NODE, ["none"], 0) })
        judge
      end
    RUBY
    errors = lines.grep(/Error/)
    assert_empty errors.grep_v(/Unavailable.*(No space left|for new files|no socket can be made)/)
    assert_equal [5, 5], [lines.count("2 done"), lines.count("all is there")], lines
  end

  # While somebody has it open for writing, the kernel lets nobody mount it so.
  def test_a_disk_that_can_only_be_read
    lines = in_own_mounts(<<~'RUBY')
      mount("size=1m")
      push("a")
      @storage.close
      mount_anew("ro")
      told(-> { push("b") }, -> { @storage.stats })
      mount_anew("rw")
      told(-> { push("c") })
      judge
    RUBY
    assert_match(/\A2 (Config|Unavailable)Error .*(Read-only|cannot be written)/, lines.first)
    assert_equal ["1 done", "all is there"], lines.drop(1)
  end
end
