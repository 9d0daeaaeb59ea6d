# frozen_string_literal: true

require_relative "cluster_case"
require "tmpdir"

# Ringspun::Cluster from its start to its end.
class ClusterLifeTest < ClusterCase
  def test_every_worker_serves
    program = start("cluster(workers: 3)")
    pids = program.ready(3)
    seen = []
    seen |= [ask(program).to_i] until seen.sort == pids.sort
    assert_clean_end(program)
    assert_equal 3, program.count(/event=gone .* status=0 /)
  end

  def test_one_worker
    program = start("cluster(workers: 1)")
    pid, = program.ready
    assert_equal "#{pid} hello\n", ask(program)
    assert_clean_end(program, :INT)
  end

  def test_a_block_without_sockets_that_asks_whether_to_stop
    program = start(<<~RUBY)
      cluster(listen: nil) do |worker|
        say "begins \#{worker.index} \#{worker.pid == $$} \#{worker.restarts} \#{worker.ready?}"
        Ringspun::Machine.current.sleep(0.001) until worker.stopping?
        say "ends"
      end
      say "after"
    RUBY
    program.wait_for(/^begins/, count: 2)
    assert_clean_end(program)
    assert_equal ["begins 0 true 0 true\n", "begins 1 true 0 true\n"], program.text.lines.grep(/^begins/).sort
    assert_equal 2, program.count(/^ends$/)
    assert_equal 1, program.count(/^after$/)
  end

  def test_a_block_that_waits_to_be_told_and_one_that_says_when_it_is_ready
    program = start(<<~RUBY)
      cluster(listen: ["127.0.0.1", 0]) do |worker|
        worker.ready!
        worker.serve {}.stop
        worker.wait
        say "told \#{worker.stopping?}" if worker.address.ip_port.positive?
      end
    RUBY
    program.ready(2)
    assert_clean_end(program)
    assert_equal 2, program.count(/^told true$/)
  end

  # As with a server of one process.
  def test_errors_of_the_block_are_told_and_those_of_the_peer_are_not
    program = start(<<~RUBY)
      told = ->(error, _stream) { say "told \#{error.message}" }
      cluster(workers: 1) do |worker|
        worker.serve(on_error: told) do |stream|
          stream.read_line(limit: 1)
        rescue Ringspun::LimitError
          say "refused"
          stream.peek(4) == "mine" ? raise(Ringspun::LimitError, "mine") : raise
        end
      end
    RUBY
    program.ready
    assert_nil ask(program, "long")
    assert_nil ask(program, "mine")
    program.wait_for(/^told mine$/)
    assert_clean_end(program)
    assert_equal [2, 1], [program.count(/^refused$/), program.count(/^told/)]
  end

  def test_strands_of_the_block_are_unwound
    program = start(<<~RUBY)
      cluster(workers: 1) do |worker|
        Ringspun.spin do
          Ringspun::Machine.current.sleep
        ensure
          say "unwound"
        end
        worker.serve { |stream| answer(stream, worker) }
      end
    RUBY
    program.ready
    assert_clean_end(program)
    assert_equal 1, program.count(/^unwound$/)
  end

  # --- draining ---

  SLOW = <<~'RUBY'
    cluster(workers: 1, drain: 60) do |worker|
      worker.serve do |stream|
        stream.read_line
        stream.write_line("begun")
        stream.write_line("ended #{stream.read_line}")
      end
    end
  RUBY

  def test_a_request_that_ends_in_time
    program = start(SLOW)
    client = connect(program)
    client.puts("one")
    assert_equal "begun\n", client.gets
    program.kill(:TERM)
    program.wait_for(/event=stopping signal=TERM/)
    client.puts("two")
    assert_equal "ended two\n", client.gets
    client.close
    assert_equal 0, program.status.exitstatus
    assert_match(/event=drained .*connections_cut=0 block_cut=false/, program.text)
  end

  # And not let wait for nobody.
  def test_one_that_comes_too_late_is_refused
    program = start(SLOW)
    client = connect(program)
    client.puts("one")
    assert_equal "begun\n", client.gets
    program.kill(:TERM)
    assert_raises(Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::EPIPE) { loop { ask(program) } }
    refute_match(/event=drained/, program.text)
    client.puts("two")
    assert_equal "ended two\n", client.gets
    client.close
    assert_equal 0, program.status.exitstatus
  end

  def test_a_request_that_does_not_end_is_cancelled
    program = start(SLOW.sub("drain: 60", "drain: 0.05"))
    client = connect(program)
    client.puts("one")
    assert_equal "begun\n", client.gets
    assert_equal 1, program.stop.exitstatus
    assert_nil client.gets
    client.close
    assert_match(/event=drained .*connections_cut=1 block_cut=false/, program.text)
    assert_match(/event=gone .*status=0/, program.text)
    assert_match(/event=ended clean=false.*not a clean end: 1 worker\(s\) cut what was left \(Ringspun:/m, program.text)
  end

  def test_a_block_that_does_not_end_is_cancelled
    program = start("cluster(workers: 1, listen: nil, drain: 0.05) { Ringspun::Machine.current.sleep }")
    program.ready
    assert_equal 1, program.stop.exitstatus
    assert_match(/event=drained .*connections_cut=0 block_cut=true.*event=ended clean=false/m, program.text)
  end

  # As where the process has had no processor for so long that both come at once.
  def test_a_block_that_ends_as_the_limit_passes_is_not_cut
    program = start(<<~RUBY)
      late = Module.new { def wait(timeout: nil) = super().tap { raise Ringspun::TimeoutError, "late" if timeout } }
      Ringspun::Cluster::Worker.prepend(Module.new { define_method(:drain) { @change.extend(late) && super() } })
      cluster(workers: 1, listen: nil, &:wait)
    RUBY
    program.ready
    assert_clean_end(program)
    assert_match(/event=drained .*block_cut=false/, program.text)
  end

  # Nobody has asked the cluster to end then.
  def test_what_was_cut_before_the_end_says_nothing_of_the_end
    program = start(SLOW.sub("drain: 60", "drain: 0"))
    client = connect(program)
    client.puts("one")
    assert_equal "begun\n", client.gets
    program.kill(:TERM, program.ready.first)
    program.wait_for(/event=drained .*connections_cut=1/)
    program.wait_for(/event=gone/)
    program.ready(2)
    assert_clean_end(program)
  ensure
    client&.close
  end

  # It waits for connections, and sees that they are gone when they were cut. How long that may take is not the question.
  def test_a_block_that_waits_for_its_servers
    program = start(<<~RUBY)
      Ringspun::Cluster::Worker.class_eval { remove_const(:BLOCK_SECONDS) && const_set(:BLOCK_SECONDS, 60) }
      cluster(workers: 1, drain: 0) do |worker|
        worker.serve(first_byte: nil) { |stream| stream.write_line("begun") && stream.read(1) }.wait
        Ringspun::Machine.current.sleep(0.001)
      end
    RUBY
    client = connect(program)
    assert_equal "begun\n", client.gets
    assert_equal 1, program.stop.exitstatus
    assert_match(/event=drained .*connections_cut=1 block_cut=false/, program.text)
  ensure
    client&.close
  end

  STUBBORN = <<~RUBY
    cluster(workers: 1, drain: 0.05, grace: 0.05) do |worker|
      worker.ready!
      say "begun"
      Ringspun.shield { Ringspun::Machine.current.sleep }
    end
  RUBY

  # Its server has as long as those that were there before.
  def test_one_that_begins_to_serve_when_it_is_told_to_end
    program = start(<<~RUBY)
      stop = Ringspun::Server.instance_method(:stop)
      Ringspun::Server.class_eval do
        undef_method :stop
        define_method(:stop) do |within:|
          say "stops within \#{within.inspect}"
          stop.bind_call(self, within:)
        end
      end
      cluster(workers: 1, drain: nil) do |worker|
        worker.wait
        worker.serve {}
      end
    RUBY
    program.wait_for(/event=started/)
    assert_clean_end(program)
    assert_equal 1, program.count(/^stops within nil$/)
  end

  def test_a_worker_that_does_not_end_is_killed
    program = start(STUBBORN)
    program.wait_for(/^begun$/)
    assert_equal 1, program.stop.exitstatus
    assert_match(/event=killing .*reason=drain/, program.text)
    assert_match(/event=gone .*status=SIGKILL .*killed_for=drain/, program.text)
    assert_match(/not a clean end: 1 worker\(s\) had to be killed \(Ringspun::ClusterError\)/, program.text)
  end

  def test_a_second_signal_kills_at_once
    program = start(STUBBORN.sub("drain: 0.05", "drain: nil"))
    program.wait_for(/^begun$/)
    program.kill(:INT)
    program.wait_for(/event=stopping signal=INT/)
    assert_equal 1, program.stop(:INT).exitstatus
    assert_match(/event=gone .*status=SIGKILL .*killed_for=signal/, program.text)
  end

  # As Ctrl-C does.
  def test_an_interrupt_of_the_whole_group
    program = start("cluster")
    program.ready(2)
    program.kill_group(:INT)
    assert_equal 0, program.status.exitstatus
    assert_equal 2, program.count(/event=gone .*status=0 /)
  end

  # As some service managers do. The worker is told twice, and drains once.
  def test_a_term_of_the_whole_group
    program = start(SLOW)
    client = connect(program)
    client.puts("one")
    assert_equal "begun\n", client.gets
    program.kill_group(:TERM)
    program.wait_for(/event=stopping signal=TERM/)
    until_state(program.ready.first, "S")
    client.puts("two")
    assert_equal "ended two\n", client.gets
    client.close
    assert_equal 0, program.status.exitstatus
    assert_equal 1, program.count(/event=drained/)
  end

  def test_the_parent_is_killed_while_a_worker_drains
    program = start(SLOW)
    client = connect(program)
    client.puts("one")
    assert_equal "begun\n", client.gets
    program.kill(:TERM, program.ready.first)
    program.ready(2)
    program.kill(:KILL)
    program.wait_for(/event=orphaned/, count: 2)
    client.puts("two")
    assert_equal "ended two\n", client.gets
    client.close
    program.wait_for_silence
  end

  def test_the_parent_is_killed
    program = start("cluster")
    program.ready(2)
    program.kill(:KILL)
    program.wait_for_silence
    assert_equal 2, program.count(/event=orphaned/)
    assert_equal 2, program.count(/event=drained/)
  end

  def test_a_worker_that_never_came_up
    program = start('cluster(workers: 1, backoff: 0.01..0.02) { raise "broken" }')
    program.wait_for(/event=gone .*restart_in=0.02/)
    assert_equal 1, program.stop.exitstatus
    assert_match(/1 worker\(s\) never came up/, program.text)
  end

  def test_a_worker_that_fails_at_the_end
    program = start(<<~RUBY)
      cluster(workers: 1, listen: nil) do |worker|
        worker.wait
        raise "at the end"
      end
    RUBY
    program.ready
    assert_equal 1, program.stop.exitstatus
    assert_match(/1 worker\(s\) failed at the end/, program.text)
  end

  def test_a_term_before_workers_are_ready
    program = start("cluster(workers: 2)")
    program.wait_for(/event=started/)
    assert_clean_end(program)
  end

  def test_without_any_limit
    program = start("cluster(workers: 1, drain: nil, boot: nil, heartbeat: nil)")
    program.ready
    assert_match(/hello/, ask(program))
    assert_clean_end(program)
  end

  # Any other signal that ends a program.
  def test_a_quit_of_the_parent
    program = start("trap(:QUIT, \"DEFAULT\"); cluster") # which is ignored in what runs in the background
    program.ready(2)
    program.kill(:QUIT)
    assert_equal Signal.list["QUIT"], program.status.termsig
    assert_equal 2, program.count(/event=gone .*status=0/)
  end

  # What is raised in the parent, by a hook that ends the program say, leaves no worker behind.
  def test_an_exit_of_the_parent
    program = start("ends = 0; cluster(settle: 0, on_worker_end: ->(*) { (ends += 1) == 1 && exit(5) })")
    program.kill(:TERM, program.ready(2).first)
    program.wait_for(/event=failed error=".*SystemExit/)
    assert_equal 5, program.status.exitstatus
  end

  # --- the parent's own ---

  def test_what_the_parent_had_is_there_again
    program = start(<<~RUBY)
      trap("TERM") { say "mine" }
      trap("CHLD") { say "child" }
      cluster(workers: 1)
      Process.kill(:TERM, $$)
      Process.wait(spawn("true"))
      say Dir.children("/proc/self/fd").size
      cluster(workers: 1)
      say Dir.children("/proc/self/fd").size
    RUBY
    2.times do |index|
      program.ready(index + 1)
      program.kill(:TERM)
    end
    assert_equal 0, program.status.exitstatus
    assert_equal 1, program.count(/^mine$/)
    assert_operator program.count(/^child$/), :>=, 3
    assert_equal 1, program.text.lines.grep(/^\d+$/).uniq.size
  end

  # Each process runs what was registered in it, the last first.
  def test_at_exit
    program = start(<<~RUBY)
      at_exit { say "parent's \#{$$ == $parent}" }
      trap("EXIT") { say "trap of the parent" }
      $parent = $$
      cluster(workers: 1, after_fork: ->(_) { at_exit { say "worker's \#{$!&.status} \#{Ringspun.run { 5 }}" } }) do |worker|
        trap("EXIT") { say "trap of the worker" }
        worker.serve { |stream| answer(stream, worker) }
      end
    RUBY
    program.ready
    assert_clean_end(program)
    assert_equal ["trap of the worker\n", "worker's 0 5\n", "parent's true\n", "trap of the parent\n"].sort,
                 program.text.lines.grep(/^(parent|worker|trap)/).sort
    assert_match(/event=gone .*status=0/, program.text)
  end

  def test_at_exit_of_a_worker_that_fails_or_exits
    program = start(<<~RUBY)
      at_exit { say "parent's" }
      cluster(workers: 3, listen: nil, settle: 0, backoff: 60..60) do |worker|
        next worker.wait if worker.restarts > 0
        at_exit { worker.index == 1 ? raise("at exit") : exit(7) } if worker.index > 0
        at_exit { say "\#{worker.index} \#{$!.inspect}" }
        worker.index == 0 ? raise("broken") : exit(5)
      end
    RUBY
    program.wait_for(/event=gone/, count: 3)
    assert_equal %w[1 1 7], program.text.scan(/event=gone .*status=(\d)/).flatten.sort
    assert_equal([0, 1, 2].map { |index| "#{index} #<SystemExit: exit>" }, program.text.scan(/\d #<SystemExit: exit>/).sort)
    program.stop
    assert_equal [1, 1], [program.count(/^parent's$/), program.count(/at exit/)]
  end

  # What a worker has made it takes along, and nothing of the parent's. Pipes have no time here, as where nothing else runs for a
  # second: files have as long as they need.
  def test_files_of_a_worker
    Dir.mktmpdir do |folder|
      program = start(<<~RUBY)
        require "tempfile"
        Ringspun::Cluster.const_get(:ChildExit).class_eval { remove_const(:FLUSH_SECONDS) && const_set(:FLUSH_SECONDS, 0) }
        kept = Tempfile.new("parent", #{folder.inspect})
        shared = File.open("#{folder}/shared", "w")
        shared.write("once")
        cluster(workers: 2) do |worker|
          $mine = Tempfile.new("worker", #{folder.inspect})
          $file = File.open("#{folder}/\#{worker.index}", "w")
          $file.write("written")
          $mine.write("x")
          ObjectSpace.undefine_finalizer($kept = Tempfile.new("kept", #{folder.inspect}))
          _, $full = $pipe = IO.pipe # nobody reads it
          $full.write_nonblock("x" * 65_536)
          $full.sync = false
          $full.write("x")
          worker.serve { |stream| answer(stream, worker) }
        end
        say "kept \#{File.exist?(kept.path)}"
      RUBY
      program.ready(2)
      assert_clean_end(program)
      assert_equal 1, program.count(/^kept true$/)
      assert_equal %w[0 1 kept kept shared], Dir.children(folder).map { |name| name[/\Akept|.+/] }.sort
      assert_equal(%w[written written once], %w[0 1 shared].map { |name| File.read("#{folder}/#{name}") })
    end
  end

  # It inherits all blocks, as a fork does anywhere.
  def test_at_exit_of_a_process_that_a_worker_has_forked
    program = start(<<~RUBY)
      at_exit { say "parent's \#{$$}" }
      cluster(workers: 1, listen: nil) do |worker|
        at_exit { say "worker's \#{$$}" }
        Process.wait(child = fork {})
        say "child \#{child}"
        worker.wait
      end
    RUBY
    child = program.wait_for(/^child (\d+)$/).first[1]
    assert_clean_end(program)
    assert_equal [1, 1], [program.count(/^worker's #{child}$/), program.count(/^parent's #{child}$/)]
    assert_equal [2, 2], [program.count(/^worker's/), program.count(/^parent's/)]
  end

  # It has the worker's handlers, but is none.
  def test_a_process_that_a_worker_has_forked_is_ended_by_its_own_signals
    program = start(<<~RUBY)
      cluster(workers: 1, listen: nil) do |worker|
        fates = %i[TERM INT HUP].map do |name|
          begun, begins = IO.pipe
          child = fork do
            begins.write(".")
            sleep
          ensure
            exit!(3) # of what it inherits, no more
          end
          begun.read(1)
          Process.kill(name, child)
          Process.wait2(child).last.exitstatus
        end
        say "ended \#{fates} \#{worker.stopping?}"
        worker.wait
      end
    RUBY
    program.wait_for(/^ended \[3, 3, 3\] false$/)
    assert_clean_end(program)
  end

  def test_a_process_that_a_hook_has_forked_is_ended_by_its_own_signals
    program = start(<<~RUBY)
      hook = lambda do |_|
        begun, begins = IO.pipe
        child = fork do
          begins.write(".")
          sleep
        end
        begun.read(1)
        Process.kill(:TERM, child)
        say "ended \#{Process.wait2(child).last.termsig}"
      end
      cluster(workers: 1, before_fork: hook)
    RUBY
    program.wait_for(/^ended #{Signal.list["TERM"]}$/)
    program.ready
    assert_clean_end(program)
  end

  def test_other_children_are_not_ours_to_wait_for
    program = start(<<~RUBY)
      other = spawn("exit 7")
      cluster(workers: 1)
      say "other \#{Process.wait2(other).last.exitstatus}"
    RUBY
    program.ready
    assert_clean_end(program)
    assert_equal 1, program.count(/^other 7$/)
  end

  def test_a_process_that_has_used_its_machine
    program = start(<<~RUBY)
      Ringspun.run { |machine| machine.sleep(0.000_1) }
      parked = Ringspun.spin { Ringspun::Machine.current.park }
      Ringspun::Machine.current.yield
      cluster
      Ringspun::Machine.current.schedule(parked, "still here")
      say parked.await
    RUBY
    program.ready(2)
    assert_match(/hello/, ask(program))
    assert_clean_end(program)
    assert_equal 1, program.count(/^still here$/)
  end
end
