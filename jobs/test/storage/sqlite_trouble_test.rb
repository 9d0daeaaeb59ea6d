# frozen_string_literal: true

require "jobs_helper"
require "timeout"
require_relative "../support/sqlite_case"

# What other code of the process, other programs and the system do to a storage in a file.
class SqliteTroubleTest < SqliteCase
  include Strands
  include AnyBackend

  # A node with a job in flight, whose lease has a minute left.
  def hold_a_job
    push("a")
    storage.extend([NODE], 60)
    storage.fetch(NODE, ["default"], 1)
  end

  def recovered_elsewhere
    status_of(forked { Sqlite.new(path).then { |own| exit!(own.recover(100).size) } }).exitstatus
  end

  # The reader opens the new file and has the writer make its tables, and the writer finds that its file is gone.
  def test_a_file_that_is_replaced_before_anybody_has_read
    push("a")
    File.rename(path, "#{path}.old")
    error = Timeout.timeout(60) { assert_raises(Jobs::UnavailableError) { storage.stats } } # must pass
    assert_match(/was replaced or removed/, error.message)
    assert_equal 0, storage.stats[:enqueued]
  end

  # As a strand that reads, while the first push makes the file.
  def test_a_thread_that_reads_a_new_file_while_its_mode_changes
    reader = Extralite::Database.new(path)
    reader.execute("CREATE TABLE one (name TEXT)")
    reader.execute("BEGIN")
    reader.query("SELECT * FROM one")
    connection = Sqlite.const_get(:Connection).new(path)
    waits = Thread.new { connection.wal }
    Thread.pass until waits.stop?
    reader.execute("COMMIT")
    waits.join
    assert_equal "wal", connection.value("PRAGMA journal_mode")
  ensure
    [reader, connection].compact.each(&:close)
  end

  # A process that only reads, such as the pages.
  def test_a_reader_sees_the_file_that_has_the_name
    push("a")
    storage.close
    assert_equal 1, storage.stats[:enqueued]
    File.rename(path, "#{path}.old")
    other = "#{folder}/other.sqlite3"
    open_storage(other).push([push_of("b"), push_of("c")])
    @opened.last.close
    File.rename(other, path)
    assert_equal 2, storage.stats[:enqueued]
  end

  def test_what_lies_in_the_folder_of_sockets_fails_no_push
    storage.stats
    Dir.mkdir("#{path}-wake")
    Dir.mkdir("#{path}-wake/folder")
    File.write("#{path}-wake/#{"long" * 40}", "")
    assert_nil push("a")
    FileUtils.rm_r("#{path}-wake")
    File.write("#{path}-wake", "no folder")
    assert_nil push("b")
    assert_equal 2, storage.stats[:enqueued]
    assert_path_exists "#{path}-wake"
  end

  # What is stored by then is never said to have failed.
  def test_a_push_without_a_descriptor_for_the_bell
    push("a")
    storage.stats
    Dir.mkdir("#{path}-wake")
    other = Socket.new(:UNIX, :DGRAM).tap { |one| one.bind(Socket.sockaddr_un("#{path}-wake/other")) }
    result = without_descriptors { push("b") rescue $! }
    assert_equal [nil, 2], [result, storage.stats[:enqueued]]
  ensure
    other&.close
  end

  def without_descriptors
    files = []
    limits = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, 256, limits.last)
    begin
      loop { files << File.open(File::NULL) }
    rescue Errno::EMFILE
      yield
    end
  ensure
    files.each(&:close)
    Process.setrlimit(:NOFILE, *limits)
  end

  def test_a_file_that_cannot_be_opened_for_want_of_descriptors
    storage
    error = without_descriptors { assert_raises(Jobs::UnavailableError) { push("a") } }
    assert_match(/Too many open files/, error.message)
    assert_nil push("a")
  end

  # Ruby holds a fork up until the transaction has ended, and here it has had enough before.
  def test_a_fork_that_is_interrupted_holds_nobody_up
    push("a")
    foreign = Extralite::Database.new(path)
    foreign.execute("BEGIN IMMEDIATE")
    pushing = Thread.new { push("b") }
    Thread.pass until writer_waits?
    forking = Thread.new { fork { exit!(0) } }
    forking.report_on_exception = false
    Thread.pass until forking.stop?
    forking.raise(Interrupt)
    assert_raises(Interrupt) { forking.value }
    foreign.execute("COMMIT")
    pushing.join
    assert_nil Timeout.timeout(60) { push("c") } # must pass
    assert_equal 3, storage.stats[:enqueued]
  ensure
    foreign&.close
  end

  # It has the lock of the turn.
  def writer_waits? = File.read("/proc/locks").match?(/ #{Process.pid} \S+:#{File.stat("#{path}-locks").ino} 1 1$/)

  # Nobody can write until it goes on, and whoever wants to is told.
  def test_a_process_that_is_stopped_in_its_turn
    push("a")
    ready, told = IO.pipe
    pid = forked do
      Sqlite.new(path).tap(&:stats).send(:engine).write { (told << "!") && sleep }
    end
    ready.read(1)
    Process.kill(:STOP, pid)
    locks = Sqlite.const_get(:LockFile)
    patience = locks.patience
    locks.patience = 0.01 # must pass
    error = assert_raises(Jobs::UnavailableError) { push("b") }
    assert_match(/the process #{pid} writes to .* for more than 10 ms, and nothing was done; is it stopped/, error.message)
    locks.patience = patience
    Process.kill(:KILL, pid)
    status_of(pid)
    push("c")
    assert_equal %w[a c], jids(storage.list("default", 0, 9))
  ensure
    locks.patience = patience if patience
    [ready, told].each(&:close)
  end

  # A handler may take no lock, and a program may fork there.
  # In a process of its own: hooks of other libraries, such as of Active Record's pools, take locks in a forked child.
  def test_a_fork_in_a_handler_of_a_signal
    told = ruby_child(<<~'RUBY', path, env: { "RUBYLIB" => $LOAD_PATH.join(":") })
      require "ringspun/jobs"
      require "ringspun/jobs/storage/sqlite"
      storage = Ringspun::Jobs::Storage::Sqlite.new(ARGV.first)
      push = ->(jid) { storage.push([Ringspun::Jobs::Storage::Push.new(queue: "a", entry: "{}", jid: jid)]) }
      push.call("a")
      forked = nil
      trap(:USR1) { forked = Process.wait2(fork { exit!(7) }).last.exitstatus }
      Process.kill(:USR1, Process.pid)
      Thread.pass until forked
      push.call("b")
      print forked, storage.stats[:enqueued]
    RUBY
    assert_equal ["72", ""], [told.out, told.err]
  end

  # The first call of a process makes its threads, with locks.
  def test_a_push_in_a_handler_of_a_signal
    2.times do |number|
      storage
      result = nil
      before = trap(:USR1) { result = [push("h#{number}")] rescue result = [$!] }
      Process.kill(:USR1, Process.pid)
      Thread.pass until result
      trap(:USR1, before || "DEFAULT")
      assert_equal [[nil], %w[h0 h1].first(number + 1)], [result, jids(storage.list("default", 0, 9))]
    end
  end

  # Says when somebody is about to wait for a bell.
  module Waiting
    class << self
      attr_accessor :names
    end

    def wait(...)
      Waiting.names&.concat(names)
      super
    end
  end

  def test_waits_end_when_another_thread_closes_the_storage
    Sqlite.const_get(:Bells).const_get(:Bell).prepend(Waiting)
    Waiting.names = []
    storage.stats
    waits = [Thread.new { storage.wait_any(NODE, ["none"], 600) }, Thread.new { storage.wait_due(600) }]
    Thread.pass until Waiting.names.size == 2
    storage.close
    assert_equal [[], false], waits.map(&:value)
    assert_nil push("a"), "it is opened again"
    assert_equal %w[a], jids(storage.wait_any(NODE, ["default"], 60))
  ensure
    Waiting.names = nil
  end

  # Holds up those who begin to wait, before they look.
  module Beginning
    class << self
      attr_accessor :begun, :gate
    end

    def open(...)
      Beginning.begun&.push(true)
      Beginning.gate&.pop
      super
    end
  end

  # Else it would have its threads, and the file, until the process ends.
  def test_who_looks_while_another_thread_closes_the_storage_opens_nothing
    threads = Thread.list
    Sqlite.const_get(:Bells).prepend(Beginning)
    { [] => -> { storage.wait_any(NODE, ["default"], 600) }, false => -> { storage.wait_due(600) } }.each do |nothing, wait|
      push("a", "b")
      Beginning.begun, Beginning.gate = Array.new(2) { Thread::Queue.new }
      waits = Thread.new(&wait)
      assert Beginning.begun.pop(timeout: SECONDS_MAX), "it does not begin"
      storage.close
      Beginning.gate.close
      assert_equal [nothing, []], [waits.value, Thread.list - threads - [waits]]
    end
  ensure
    Beginning.begun = Beginning.gate = nil
  end

  def test_a_path_that_cannot_be_looked_at_for_want_of_descriptors
    Dir.mkdir("#{folder}/folder")
    error = without_descriptors { assert_raises(Jobs::UnavailableError) { Sqlite.new("#{folder}/folder/jobs.sqlite3") } }
    assert_match(/Too many open files/, error.message)
    open_storage("#{folder}/folder/jobs.sqlite3").push([push_of("a")])
  end

  # Nobody who sees a new one may take a node for dead that is locked in the old one.
  def test_a_file_of_locks_that_is_removed_kills_no_node
    hold_a_job
    File.unlink("#{path}-locks")
    assert_equal 0, recovered_elsewhere, "before its process has noticed"
    push("b")
    assert_equal 0, recovered_elsewhere, "and after that"
    File.unlink("#{path}-locks")
    push("c")
    File.unlink("#{path}-locks")
    assert_equal 0, recovered_elsewhere
    assert_equal %w[a], jids(storage.in_flight(NODE))
  end

  # Numbers of nodes begin anew in a new file of jobs, and the file of locks is the same.
  def test_a_file_that_is_replaced_leaves_nodes_their_locks
    hold_a_job
    File.rename(path, "#{path}.old")
    assert_raises(Jobs::UnavailableError) { push("b") }
    push("b")
    pid = forked do
      own = Sqlite.new(path)
      own.extend(["its"], 60)
      own.fetch("its", ["default"], 1)
      Process.kill(:KILL, Process.pid)
    end
    status_of(pid)
    assert_equal %w[b], jids(storage.recover(100)), "it was locked, and the kernel knows"
  end

  # It is locked in the new file, and the kernel knows.
  def test_a_process_that_is_killed_after_the_file_of_locks_was_made_again
    push("a")
    ready, told = IO.pipe
    gate, opened = IO.pipe
    pid = forked do
      own = Sqlite.new(path)
      own.extend(["its"], 60)
      own.fetch("its", ["default"], 1)
      told << "!"
      gate.read(1)
      own.push([push_of("b")])
      told << "!"
      sleep
    end
    ready.read(1)
    File.unlink("#{path}-locks")
    opened << "!"
    ready.read(1)
    assert_empty storage.recover(100)
    Process.kill(:KILL, pid)
    status_of(pid)
    assert_equal %w[a], jids(storage.recover(100))
  ensure
    [ready, told, gate, opened].each(&:close)
  end

  # Both have a turn then, and the locks of SQLite keep them apart.
  def test_two_turns_at_once
    ready, told = IO.pipe
    gate, opened = IO.pipe
    storage.stats
    pid = forked do
      Sqlite.new(path).tap(&:stats).send(:engine).write { |tables| told << "!" && gate.read(1) && tables.push([push_of("a")]) }
    end
    ready.read(1)
    storage.close # and with it the file of locks
    File.unlink("#{path}-locks")
    pushing = Thread.new { push("b") }
    Thread.pass until File.exist?("#{path}-locks") && writer_waits?
    assert_empty jids(storage.list("default", 0, 9))
    opened << "!"
    assert_nil pushing.value
    assert_predicate status_of(pid), :success?
    assert_equal [%w[a b], [["ok"]]], [jids(storage.list("default", 0, 9)), query("PRAGMA integrity_check")]
  ensure
    [ready, told, gate, opened].each(&:close)
  end

  # A program that takes no turns, and holds the file for longer than anybody waits.
  def test_a_foreign_writer_that_does_not_let_go
    push("a")
    connections = Sqlite.const_get(:Connection)
    patience = connections.patience
    connections.patience = 0.01 # must pass
    storage.close # which opens a connection with that
    storage.stats
    foreign = Extralite::Database.new(path)
    foreign.execute("BEGIN IMMEDIATE")
    error = assert_raises(Jobs::UnavailableError) { push("b") }
    assert_match(/is locked by another program, or by .*, and nothing was done/, error.message)
    assert_equal %w[a], jids(storage.list("default", 0, 9)), "whoever reads goes on"
    foreign.execute("COMMIT")
    connections.patience = patience
    assert_nil push("c")
    assert_equal %w[a c], jids(storage.list("default", 0, 9))
  ensure
    connections.patience = patience if patience
    foreign&.close
  end

  # Such as a copy of the folder, made by the program itself. The kernel drops the locks of the process then.
  def test_whoever_reads_the_file_of_locks_kills_no_node
    hold_a_job
    File.read("#{path}-locks")
    assert_equal 0, recovered_elsewhere
    assert_equal %w[a], jids(storage.in_flight(NODE))
  end

  # As if it were left of a crash.
  def test_a_file_of_locks_that_is_removed_is_made_again
    hold_a_job
    File.unlink("#{path}-locks")
    push("b")
    assert_path_exists "#{path}-locks"
    assert_equal 0, recovered_elsewhere
    storage.leave(NODE)
    assert_equal %w[a b], jids(storage.list("default", 0, 9))
  end

  # The mode of a file stays in it.
  def test_a_file_of_another_program_stays_as_it_is
    query("CREATE TABLE things (name TEXT)")
    before = File.binread(path)
    assert_raises(Jobs::StorageError) { push("a") }
    assert_equal [true, [["delete"]]], [before == File.binread(path), query("PRAGMA journal_mode")]
  end

  # What cannot be written is told, and all else is closed.
  def test_a_close_that_fails_leaves_nothing_open
    threads = Thread.list
    hold_a_job
    File.unlink(path)
    assert_raises(Jobs::UnavailableError) { storage.close }
    assert_empty Thread.list - threads
    assert_empty(Dir["/proc/self/fd/*"].select { |fd| (File.readlink(fd) rescue "").start_with?(folder) })
    assert_nil push("b")
  end

  # As a test suite does that ends with no thread but its own.
  def test_threads_that_the_program_kills_begin_anew
    before = Thread.list
    hold_a_job
    storage.stats
    descriptors = Dir.children("/proc/self/fd").size
    %w[writer reader].each do |name|
      (Thread.list - before).find { |thread| thread.name == "ringspun sqlite #{name}" }.kill.join
      assert_nil push(name)
      assert_equal [1, 2, descriptors],
                   [storage.stats[:in_flight], (Thread.list - before).size, Dir.children("/proc/self/fd").size]
    end
    assert_equal 0, recovered_elsewhere
    assert_equal %w[writer reader], jids(storage.list("default", 0, 9))
  end

  # Each process has one turn and waits for the other, in two threads, which the kernel takes for a deadlock.
  def test_two_processes_that_share_two_files
    paths = Array.new(2) { |number| "#{folder}/#{number}.sqlite3" }
    paths.each { |one| open_storage(one).stats }
    pids = Array.new(2) do
      forked do
        threads = paths.map { |one| Thread.new { Sqlite.new(one).then { |own| 50.times { own.push([push_of("a")]) } } } }
        threads.each { |thread| thread.report_on_exception = false }.each(&:join)
      end
    end
    assert_equal [true] * 2, pids.map { |pid| status_of(pid).success? }
    assert_equal([100] * 2, @opened.map { |one| one.stats[:enqueued] })
  end

  def test_what_can_be_no_path
    Dir.mkdir("#{folder}/folder")
    File.mkfifo("#{folder}/pipe")
    { "#{folder}/folder" => /is no file but a directory; name another one/, "#{folder}/pipe" => /no file but a fifo/,
      "#{folder}/a\0b" => /null byte/, "~nobody.at.all/jobs" => /user nobody.at.all/ }.each do |wrong, message|
      assert_match message, assert_raises(Jobs::ConfigError) { Sqlite.new(wrong) }.message
    end
    assert_raises(Jobs::ConfigError) { Sqlite.new(path, durable: true) }
  end
end
