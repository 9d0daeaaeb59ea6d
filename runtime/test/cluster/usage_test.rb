# frozen_string_literal: true

require_relative "cluster_case"
require "logger"
require "stringio"
require "tmpdir"

# What Ringspun::Cluster.run takes, and what it refuses before it opens or forks anything.
class ClusterUsageTest < ClusterCase
  include AnyBackend

  def refuse(message, **options)
    error = assert_raises(Ringspun::UsageError) { Ringspun::Cluster.run(logger: nil, **options) { flunk } }
    assert_match message, error.message
  end

  def test_options
    [-1, 1.5, :many, nil].each { |workers| refuse(/workers: must be :cores or a number from 0 to 1024/, workers:) }
    refuse(/drain: must be a number of seconds or nil, got -1/, drain: -1)
    refuse(/heartbeat: must be a positive number of seconds or nil, got 0/, heartbeat: 0)
    refuse(/boot: must be a positive number of seconds or nil, got "1"/, boot: "1")
    refuse(/grace: must be a number of seconds, got nil/, grace: nil)
    refuse(/settle: must be a number of seconds, got Infinity/, settle: Float::INFINITY)
    [1, 0..1, 2..1, "a".."b"].each { |backoff| refuse(/backoff: must be a range of positive seconds/, backoff:) }
    refuse(/on_reload: must be a proc or have #call, got 1/, on_reload: 1)
    refuse(/logger: must be a Logger, an IO or nil, got 1/, logger: 1)
    refuse(/listen: takes \[host, port\]/, listen: 80)
    refuse(/listen: takes \[host, port\].* got \["localhost"\]/, listen: ["localhost"])
    refuse(/backlog: must be a positive number of connections, .*got 0/, backlog: 0)
  end

  def test_what_cannot_be_opened_leaves_nothing
    TCPServer.open("127.0.0.1", 0) do |server|
      assert_raises(Errno::EADDRINUSE) do
        Ringspun::Cluster.run(logger: nil, listen: { one: ["127.0.0.1", 0], two: ["127.0.0.1", server.addr[1]] }) { flunk }
      end
    end
    assert_raises(Errno::ENOENT) { Ringspun::Cluster.run(logger: nil, listen: "/nowhere/socket") { flunk } }
  end

  def test_without_a_block
    assert_raises(Ringspun::UsageError) { Ringspun::Cluster.run(logger: nil) }
  end

  def test_inside_a_run
    assert_raises(Ringspun::UsageError) { Ringspun.run { Ringspun::Cluster.run(logger: nil) { flunk } } }
    assert_raises(Ringspun::UsageError) { Ringspun::Simulation.run { Ringspun::Cluster.run(logger: nil) { flunk } } }
  end

  def test_on_another_thread
    error = Thread.new do
      Ringspun::Cluster.run(logger: nil) { flunk }
    rescue Ringspun::UsageError => e
      e
    end.value
    assert_match(/is for the main thread/, error.message)
  end

  def test_in_a_worker
    program = start(<<~RUBY)
      cluster(workers: 1, listen: nil) do |worker|
        cluster
      rescue Ringspun::UsageError => error
        say error.message
        worker.wait
      end
    RUBY
    program.wait_for(/call it outside of Ringspun.run/)
    assert_clean_end(program)
  end

  def test_in_a_hook_of_the_parent
    program = start("cluster(workers: 1, backoff: 0.01..0.01, before_fork: ->(_) { cluster })")
    program.wait_for(/event=not_started .*there is a cluster already/)
    assert_equal 1, program.stop.exitstatus
  end

  # --- sockets ---

  def test_sockets_with_names
    Dir.mktmpdir do |folder|
      program = start(<<~RUBY)
        cluster(workers: 1, mode: 0o600, listen: { web: ["127.0.0.1", 0], admin: "#{folder}/door" }) do |worker|
          [-> { worker.serve {} }, -> { worker.serve(:other) {} }, -> { worker.serve(:web) }].each do |wrong|
            wrong.call
          rescue Ringspun::UsageError => error
            say "wrong: \#{error.message}"
          end
          worker.serve(:web) { |stream| answer(stream, worker) }
          say "ready? \#{worker.ready?}"
          worker.serve(:admin, first_byte: nil) { |stream| stream.write_line("admin of \#{worker.address(:web).ip_port}") }
          say "ready? \#{worker.ready?}"
          begin
            worker.serve(:web) {}
          rescue Ringspun::UsageError => error
            say "wrong: \#{error.message}"
          end
        end
      RUBY
      program.wait_for(/wrong: .*served already/)
      assert_equal "admin of #{program.port}\n", UNIXSocket.open("#{folder}/door", &:gets)
      assert_match(/hello/, ask(program))
      assert_equal 0o600, File.stat("#{folder}/door").mode & 0o777
      2.times { |index| program.kill(:HUP) && program.wait_for(/event=reloaded/, count: index + 1) }
      assert_path_exists "#{folder}/door"
      assert_clean_end(program)
      refute_path_exists "#{folder}/door"
      assert_equal ["there is no socket nil; those of Cluster.run(listen: ...) are [:web, :admin]",
                    "there is no socket :other; those of Cluster.run(listen: ...) are [:web, :admin]", "serve needs a block",
                    "the socket :web is served already"], program.text.scan(/^wrong: (.*)/).flatten.first(4)
      assert_equal %w[false true], program.text.scan(/^ready\? (.*)/).flatten.first(2)
    end
  end

  def test_a_file_that_nobody_listens_on_is_replaced
    Dir.mktmpdir do |folder|
      UNIXServer.new("#{folder}/door").close
      program = start("cluster(workers: 1, listen: '#{folder}/door')")
      program.ready
      assert_raises(Errno::EADDRINUSE) { Ringspun::Cluster.run(logger: nil, listen: "#{folder}/door") { flunk } }
      assert_clean_end(program)
    end
  end

  def test_as_many_workers_as_processors
    program = start("cluster(workers: :cores, listen: nil, &:wait)")
    program.ready(Etc.nprocessors)
    assert_clean_end(program)
    assert_equal Etc.nprocessors, program.count(/event=started/)
  end

  # --- the log ---

  # Which is no exception.
  def test_a_thread_that_is_killed_as_it_begins_to_listen_leaves_nothing
    mode = Object.new
    def mode.to_int = Thread.current.kill
    places = { tcp: ["127.0.0.1", 0], unix: "@ringspun-#{Process.pid}" }
    def places.each(&) = super.then { Thread.current.kill }
    sockets = Ringspun::Cluster.const_get(:Sockets)
    Dir.mktmpdir do |folder|
      GC.disable # which would close them as well
      [[places, nil], [{ unix: "#{folder}/door" }, mode]].each do |listen, mode|
        before = Leaks.descriptors
        Thread.new { sockets.open(listen, 1, mode) { flunk } }.join
        assert_equal before, Leaks.descriptors
      end
    ensure
      GC.enable
    end
  end

  def test_a_logger
    program = start(<<~RUBY)
      require "logger"
      logger = Logger.new($stdout, formatter: ->(severity, _, _, message) { "\#{severity} \#{message}\\n" })
      thread = Thread.new { sleep }
      cluster(workers: 1, logger:)
    RUBY
    program.wait_for(/^INFO ringspun.cluster event=ready worker=0 pid=\d+$/)
    assert_match(/^WARN ringspun.cluster event=threads count=1 /, program.text)
    assert_clean_end(program)
  end

  def test_values_in_the_log
    out = StringIO.new
    log = Ringspun::Cluster.const_get(:Log)
    log.new(out).info(:event, number: 1.23456, word: :a, words: "a b", none: "", error: RuntimeError.new("x\ny"))
    assert_match(/\Aringspun.cluster event=event number=1.23 word=a words="a b" none="" error=".*x \(R.*"\n\z/, out.string)
    assert_nil log.new(nil).info(:event)
  end

  def test_a_log_that_fails
    program = start(<<~RUBY)
      logger = Object.new
      def logger.write(line) = line.include?("ready") ? raise("no log") : $stderr.write(line)
      cluster(workers: 1, logger:)
    RUBY
    program.wait_for(/event=log_failed error=".*no log/)
    assert_clean_end(program)
  end

  # --- the terminal ---

  # In place of one a file, which is removed: http/test/command_start_test.rb has a real one.
  def test_a_terminal_is_closed_for_some_seconds
    terminal = Ringspun::Cluster.const_get(:Terminal)
    Dir.mktmpdir do |folder|
      never = terminal.new(path = "#{folder}/tty")
      File.write(path, "")
      there = terminal.new(path)
      refute there.closed?(1)
      File.unlink(path)
      File.symlink(path, path) # cannot be opened, which says nothing of a terminal
      refute there.closed?(1)
      File.unlink(path)
      there.look(2)
      assert_equal([true, true, false], [2, 6.9, 7].map { |now| there.closed?(now) })
      refute never.closed?(8)
    end
  end
end
