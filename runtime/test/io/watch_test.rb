# frozen_string_literal: true

require_relative "io_case"

# Ringspun.watch: what the kernel tells of files.
class WatchTest < IOCase
  include InFolder

  def test_what_happens_in_a_folder
    on_watch do |watch|
      File.write(path("a"), "x")
      File.chmod(0o600, path("a"))
      File.rename(path("a"), path("b"))
      File.unlink(path("b"))
      changes = [[:created, "a", nil], [:modified, "a", nil], [:attributes, "a", nil], [:moved, "b", "a"], [:deleted, "b", nil]]
      assert_equal changes, events(watch, 5)
    end
  end

  def test_it_waits_for_something
    on_watch do |watch|
      strand = waiting(/read/) { watch.next_event }
      Dir.mkdir(path("inner"))
      event = strand.await
      assert_equal [:created, path("inner"), nil, "inner"], [event.kind, event.path, event.from, event.name]
      assert_predicate event, :directory?
      assert_match(/created .*inner/, event.inspect)
      assert_raises(Ringspun::TimeoutError) { watch.next_event(timeout: 0.01) }
    end
  end

  def test_only_what_is_asked_for
    on_watch(:written, :deleted) do |watch|
      File.write(path("a"), "x")
      File.read(path("a"))
      File.unlink(path("a"))
      assert_equal [[:written, "a", nil], [:deleted, "a", nil]], events(watch, 2)
    end
    on_watch(:opened, :read, :closed) do |watch|
      File.write(path("a"), "x")
      File.read(path("a"))
      assert_equal %i[opened closed opened read closed], events(watch, 5).map(&:first)
    end
  end

  def test_a_file_until_it_is_deleted
    on_machine do
      File.write(path("file"), "")
      seen = []
      strand = waiting(/read/) { Ringspun.watch(path("file")) { |event| seen << event.kind } }
      File.write(path("file"), "x")
      File.unlink(path("file"))
      assert_nil strand.await
      assert_equal :deleted, seen.last
      assert_includes seen, :modified
    end
  end

  # A program that follows a file has it open.
  def test_an_open_file_until_it_is_deleted_or_replaced
    file = path("file")
    [-> { File.unlink(file) }, -> { File.rename(path("other"), file) }].each do |change|
      on_machine do |machine|
        File.write(file, "")
        File.write(path("other"), "")
        File.open(file) do
          watch = Ringspun.watch(file, :modified, :deleted)
          File.chmod(0o600, file)
          File.write(file, "x")
          assert_equal :modified, watch.next_event.kind
          change.call
          kinds = []
          machine.timeout(30) { watch.each { |event| kinds << event.kind } }
          assert_equal [:deleted], kinds - [:modified]
          assert_nil watch.next_event
          watch.close
        end
      end
    end
  end

  def test_a_folder_until_it_is_moved
    on_machine do
      Dir.mkdir(path("inner"))
      watch = Ringspun.watch(path("inner"), :moved)
      File.rename(path("inner"), path("other"))
      assert_equal [:moved, nil, path("inner")], watch.next_event.then { |event| [event.kind, event.path, event.from] }
      assert_nil watch.next_event
      watch.close
    end
  end

  def test_moves_into_and_out_of_it
    on_machine do
      Dir.mkdir(path("inner"))
      File.write(path("file"), "")
      watch = Ringspun.watch(path("inner"))
      File.rename(path("file"), path("inner/file"))
      File.rename(path("inner/file"), path("out"))
      assert_equal [[:moved, "inner/file", nil], [:moved, nil, "inner/file"]], events(watch, 2)
      watch.close
    end
  end

  # More than one read of events ends between the two halves of one.
  def test_a_move_is_one_event_wherever_it_is_cut
    on_watch do |watch|
      File.write(path("0"), "")
      3000.times { |number| File.rename(path(number.to_s), path((number + 1).to_s)) }
      assert_equal [:created, "0", nil], events(watch, 1).first
      3000.times { |number| assert_equal [[:moved, (number + 1).to_s, number.to_s]], events(watch, 1) }
    end
  end

  def test_a_tree
    Dir.mkdir(path("before"))
    on_watch(recursive: true) do |watch|
      File.write(path("before/a"), "")
      assert_equal [[:created, "before/a", nil]], events(watch, 1)
      FileUtils.mkdir_p(path("one/two/three"))
      File.write(path("one/two/three/file"), "")
      assert_equal [%w[one one/two one/two/three one/two/three/file], %i[created]],
                   events(watch, 4).then { |all| [all.map { |each| each[1] }, all.map(&:first).uniq] }
      File.rename(path("one/two"), path("moved"))
      File.write(path("moved/three/more"), "")
      assert_equal [[:moved, "moved", "one/two"], [:created, "moved/three/more", nil]], events(watch, 2)
      File.unlink(path("moved/three/file"))
      File.write(path("moved/three/file"), "")
      assert_equal [[:deleted, "moved/three/file", nil], [:created, "moved/three/file", nil]], events(watch, 2)
    end
  end

  def test_a_folder_that_leaves_the_tree_is_watched_no_more
    Dir.mkdir(path("tree"))
    on_machine do
      watch = Ringspun.watch(path("tree"), recursive: true)
      FileUtils.mkdir_p(path("tree/one/two"))
      assert_equal 2, events(watch, 2).size
      File.rename(path("tree/one"), path("out"))
      assert_equal [[:moved, nil, "tree/one"]], events(watch, 1)
      File.write(path("out/two/file"), "")
      File.write(path("tree/last"), "")
      assert_equal [[:created, "tree/last", nil]], events(watch, 1)
      watch.close
    end
  end

  def test_an_overflow_is_told
    most = File.read("/proc/sys/fs/inotify/max_queued_events").to_i
    2.times { |number| File.write(path(number.to_s), "") }
    on_watch(:attributes) do |watch|
      (most + 2).times { |number| File.utime(0, number, path((number % 2).to_s)) }
      last = nil
      (most + 1).times { last = watch.next_event }
      assert_equal [:overflow, @folder], [last.kind, last.path]
      File.utime(0, 0, path("0"))
      assert_equal :attributes, watch.next_event.kind
    end
  end

  # The kernel tells of both at once, so one strand fetches what the other waits for.
  def test_several_strands_wait
    on_watch(:created) do |watch|
      strands = [waiting(/read/) { watch.next_event(timeout: 20).name }, waiting(/mutex/i) { watch.next_event(timeout: 20).name }]
      %w[a b].each { |name| File.write(path(name), "") }
      assert_equal %w[a b], @machine.await(*strands).sort
    end
  end

  def test_closed_while_several_wait
    on_machine do
      watch = Ringspun.watch(@folder)
      strands = [waiting(/read/) { watch.next_event }, waiting(/mutex/i) { watch.next_event }]
      watch.close
      strands.each { |strand| assert_raises(Ringspun::ClosedError) { strand.await } }
    end
  end

  def test_closed_meanwhile
    on_machine do
      watch = Ringspun.watch(@folder)
      strand = waiting(/read/) { watch.each { flunk } }
      watch.close
      assert_raises(Ringspun::ClosedError) { strand.await }
      assert_raises(Ringspun::ClosedError) { watch.next_event }
      assert_predicate watch, :closed?
      assert_nil watch.close
    end
  end

  def test_the_block_breaks_or_is_cancelled
    on_machine do |machine|
      strand = waiting(/read/) { Ringspun.watch(@folder) { break :first } }
      File.write(path("a"), "")
      assert_equal :first, strand.await
      strand = waiting(/read/) { Ringspun.watch(@folder) { flunk } }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
    end
  end

  def test_a_cancelled_wait_has_lost_nothing
    on_watch(:created) do |watch|
      names = Array.new(amount(40)) { |number| number.to_s }
      seen = []
      names.each do |name|
        strand = spin { watch.next_event.name }
        rand(3).times { @machine.yield }
        File.write(path(name), "")
        @machine.terminate(strand)
        seen << strand.await unless error_of { strand.join }
      end
      seen << watch.next_event.name while seen.size < names.size
      assert_equal names, seen
    end
  end

  def test_a_forked_child_has_none
    on_watch do |watch|
      reader, writer = IO.pipe
      before = Dir.children("/proc/self/fd").size
      pid = fork do
        inherited = Leaks.descriptors.count { |target, _| target.include?("inotify") }
        writer.write([inherited, watch.closed?, error_of { watch.next_event }.class, watch.close].inspect)
        exit!(0)
      end
      Process.wait(pid)
      writer.close
      assert_equal "[0, true, Ringspun::ClosedError, nil]", reader.read
      reader.close
      File.write(path("a"), "")
      assert_equal :created, watch.next_event.kind
      assert_equal before - 2, Dir.children("/proc/self/fd").size
    end
  end

  def test_bad_input
    on_machine do
      assert_raises(Errno::ENOENT) { Ringspun.watch(path("missing")) { flunk } }
      [nil, 1, "a\0b"].each { |given| assert_raises(Ringspun::UsageError) { Ringspun.watch(given) } }
      error = assert_raises(Ringspun::UsageError) { Ringspun.watch(@folder, :changed) }
      assert_match(/unknown kind :changed; known are :read/, error.message)
    end
  end

  private

  def on_watch(*kinds, **options)
    on_machine do
      watch = Ringspun.watch(@folder, *kinds, **options)
      yield watch
    ensure
      watch&.close
    end
  end

  # So many of those that are not of a file's contents, by kind and by the path in the folder.
  def events(watch, count)
    seen = []
    while seen.size < count
      event = watch.next_event(timeout: 10)
      seen << [event.kind, *[event.path, event.from].map { |each| each&.delete_prefix("#{@folder}/") }]
    end
    seen
  end
end

class SimulatedWatchTest < IOCase
  include Simulated

  def test_there_are_none
    on_machine(faults: false) { assert_raises(Ringspun::UnsupportedError) { Ringspun.watch("/") { flunk } } }
  end
end
