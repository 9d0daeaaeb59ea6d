# frozen_string_literal: true

require_relative "cluster_case"

# Workers that die, hang, or never come up, and what becomes of their connections.
class ClusterCrashTest < ClusterCase
  # --- kill -9 ---

  # Only a request that was in the killed worker's hands may fail, and a client has one at a time.
  def test_workers_are_killed_under_load
    program = start("cluster(workers: 2, settle: 0)")
    with_load(program) do |load|
      killed = Array.new(6) do |index|
        victim = program.ready(index + 2).last
        program.kill(:KILL, victim)
        program.wait_for(/event=gone .*pid=#{victim} .*status=SIGKILL/)
        load.run(20)
        victim
      end
      load.stop
      assert_only_in_flight(load.failed, killed)
    end
    program.ready(8)
    assert_clean_end(program)
  end

  def assert_only_in_flight(failures, killed)
    assert_operator failures.size, :<=, 4 * killed.size
    assert_empty(failures.map(&:error).grep(Errno::ECONNREFUSED))
    assert_empty failures.map(&:worker).reject(&:zero?) - killed
  end

  # They wait in the kernel, and that one of those who sleep there is killed changes nothing.
  def test_connections_that_nobody_has_accepted_are_served_by_others
    program = start("cluster(workers: 2, settle: 0)")
    old = program.ready(2)
    old.each { |pid| stop_process(pid) }
    clients = Array.new(20) { connect(program).tap { |client| client.puts("hello") } }
    old.each { |pid| program.kill(:KILL, pid) }
    served_by = clients.map { |client| Integer(client.gets[/\A\d+/]) }
    assert_empty served_by & old
    clients.each(&:close)
    program.wait_for(/event=gone .*status=SIGKILL/, count: 2) # else the end is not clean
    assert_clean_end(program)
  end

  def test_a_worker_that_stands_still_keeps_no_connection_from_others
    program = start("cluster(workers: 2)")
    still, other = program.ready(2)
    stop_process(still)
    clients = Array.new(20) { connect(program).tap { |client| client.puts("hello") } }
    assert_equal ["#{other} hello\n"], clients.map(&:gets).uniq
    clients.each(&:close)
    Process.kill(:CONT, still)
    assert_clean_end(program)
  end

  def test_one_that_has_as_many_as_it_may_leaves_the_next_to_others
    program = start(<<~RUBY)
      cluster(workers: 3) { |worker| worker.serve(max_connections: 1) { |stream| answer(stream, worker) } }
    RUBY
    pids = program.ready(3)
    clients = Array.new(3) { connect(program).tap { |client| client.puts("hello") } }
    assert_equal pids.sort, clients.map { |client| client.gets.to_i }.sort
    clients.each(&:close)
    assert_clean_end(program)
  end

  # --- ends ---

  def test_one_that_lived_well_is_replaced_at_once
    program = start("cluster(workers: 1, settle: 0, backoff: 1000..1000)")
    first, = program.ready
    program.kill(:KILL, first)
    assert_equal "#{program.ready(2).last} hello\n", ask(program)
    assert_clean_end(program)
    assert_match(/event=gone .*pid=#{first} status=SIGKILL lived=\S+ restart_in=0$/, program.text)
  end

  def test_one_that_fails_again_and_again_is_told_of_when_the_pause_changes
    program = start(<<~RUBY)
      cluster(workers: 1, settle: 1000, backoff: 0.01..0.03) do |worker|
        worker.serve { |stream| answer(stream, worker) } if worker.restarts == 8
        exit 3 if worker.restarts < 8
      end
    RUBY
    program.ready
    assert_equal %w[0.01 0.02 0.03], program.text.scan(/event=gone .*status=3 .*restart_in=(\S+)/).flatten
    assert_equal 9, program.count(/event=started/)
    assert_clean_end(program)
  end

  def test_one_that_ends_by_itself_is_replaced
    program = start(<<~RUBY)
      cluster(workers: 1, listen: nil, settle: 0) do |worker|
        worker.wait if worker.restarts == 2
      end
    RUBY
    program.ready(3)
    assert_clean_end(program)
    assert_equal 3, program.count(/event=gone .*status=0/)
  end

  def test_an_error_of_the_block_is_told
    program = start('cluster(workers: 1, backoff: 0.01..0.01) { |w| w.restarts == 0 ? raise("broken") : w.ready! }')
    program.ready
    assert_match(/event=failed worker=0 pid=\d+ error=".*broken \(RuntimeError\)/, program.text)
    assert_match(/event=gone .*status=1 /, program.text)
    program.stop
  end

  def test_a_worker_that_is_told_to_end_by_others_drains_and_is_replaced
    program = start("cluster(workers: 1, settle: 1000, backoff: 1000..1000)")
    first, = program.ready
    client = connect(program)
    client.puts("one")
    assert_equal "#{first} one\n", client.gets
    program.kill(:TERM, first)
    second = program.ready(2).last
    assert_equal "#{second} hello\n", ask(program)
    client.puts("two")
    assert_equal "#{first} two\n", client.gets
    client.close
    program.wait_for(/event=gone .*pid=#{first} status=0/)
    assert_clean_end(program)
  end

  # However long it takes to end.
  def test_a_worker_that_is_told_to_end_takes_no_connection_from_the_one_in_its_place
    path = File.join(Dir.tmpdir, "ringspun-stop-#{Process.pid}")
    program = start(<<~RUBY)
      cluster(workers: 1, settle: 1000, backoff: 1000..1000) do |worker|
        late = Module.new do
          def stop(**)
            @machine.sleep(0.01) until File.exist?(#{path.dump})
            super
          end
        end
        Ringspun::Server.prepend(late)
        worker.serve { |stream| answer(stream, worker) }
      end
    RUBY
    first, = program.ready
    program.kill(:TERM, first)
    second = program.ready(2).last
    clients = Array.new(20) { connect(program).tap { |client| client.puts("hello") } }
    assert_equal ["#{second} hello\n"], clients.map(&:gets).uniq
    clients.each(&:close)
    File.write(path, "")
    program.wait_for(/event=gone .*pid=#{first} status=0/)
    assert_clean_end(program)
  ensure
    FileUtils.rm_f(path)
  end

  # Else one that has itself told to end as soon as it begins would be forked without a pause.
  def test_a_worker_that_is_told_to_end_before_it_is_ready_has_failed
    program = start(<<~RUBY)
      cluster(workers: 1, backoff: 1000..1000) do |worker|
        worker.restarts.zero? ? Process.kill(:TERM, worker.pid) : worker.ready!
        worker.wait
      end
    RUBY
    program.wait_for(/event=gone .*status=0/)
    program.kill(:HUP)
    program.wait_for(/event=reloaded/)
    assert_clean_end(program)
    assert_equal 2, program.count(/event=started/)
  end

  def test_a_hook_of_the_worker_that_raises
    program = start('cluster(workers: 1, backoff: 0.01..0.01, after_fork: ->(w) { raise "hook" if w.restarts == 0 })')
    program.ready
    assert_match(/event=failed .*hook \(RuntimeError\)/, program.text)
    assert_clean_end(program)
  end

  def test_hooks_of_the_parent_that_raise
    program = start(<<~RUBY)
      times = 0
      cluster(workers: 1, backoff: 0.01..0.01, settle: 0,
              before_fork: ->(index) { (times += 1) == 1 && raise("before \#{index}") },
              on_worker_end: ->(*told) { raise told.inspect })
    RUBY
    first, = program.ready
    assert_match(/event=not_started worker=0 error=".*before 0 \(RuntimeError\)/, program.text)
    program.kill(:KILL, first)
    program.ready(2)
    assert_match(/event=hook_failed hook=on_worker_end error=".*\[0, #{first}, .*SIGKILL/, program.text)
    assert_clean_end(program)
  end

  # It is not a second parent, and the first one starts another worker.
  def test_a_fork_that_raises_in_the_child
    program = start(<<~RUBY)
      forks = 0
      Process.singleton_class.prepend(Module.new do
        define_method(:_fork) do
          forks += 1
          super().tap { |pid| raise "in the child" if pid.zero? && forks == 1 }
        end
      end)
      cluster(workers: 1, backoff: 0.01..0.01)
      say "the end of \#{$$}"
    RUBY
    program.ready
    assert_clean_end(program)
    assert_match(/event=failed worker=0 .*in the child \(RuntimeError\)/, program.text)
    assert_match(/event=gone worker=0 .*status=1 /, program.text)
    assert_equal ["the end of #{program.pid}\n"], program.text.lines.grep(/^the end of/)
  end

  # --- hanging ---

  # No beat is expected of those that come behind the first one, which may have no processor for a second.
  ONE_HEART = <<~RUBY
    Ringspun::Cluster.const_get(:Settings).prepend(Module.new { def heartbeat = $hung ? nil : super })
    hung = ->(*) { $hung = true }
  RUBY

  # As soon as it is ready, before a beat of its own may be late. It has as long to say where it hangs as that takes.
  def test_a_loop_that_hangs_in_ruby
    program = start(<<~RUBY)
      #{ONE_HEART}
      Ringspun::Cluster.const_get(:WorkerProcess).class_eval { remove_const(:ABORT_SECONDS) && const_set(:ABORT_SECONDS, 1000) }
      def endless = loop {}
      cluster(workers: 1, heartbeat: 1, settle: 0, on_worker_end: hung) do |worker|
        worker.serve { |stream| stream.read_line && stream.write_line("fine") }
        endless if worker.restarts.zero?
      end
    RUBY
    first, = program.ready
    program.wait_for(/event=hung worker=0 pid=#{first}/)
    program.ready(2)
    assert_equal "fine\n", ask(program)
    assert_match(/in `endless'|in 'Object#endless'/, program.text)
    assert_match(/event=gone .*pid=#{first} status=1 .*killed_for=heartbeat/, program.text)
    assert_clean_end(program)
  end

  # In C, and its handlers are never run.
  def test_a_worker_that_stands_still_is_killed
    program = start(<<~RUBY)
      #{ONE_HEART}
      cluster(workers: 1, heartbeat: 1, settle: 0, on_worker_end: hung) do |worker|
        worker.serve { |stream| answer(stream, worker) }
        Process.kill(:STOP, worker.pid) if worker.restarts.zero?
      end
    RUBY
    first, = program.ready
    program.wait_for(/event=gone .*pid=#{first} status=SIGKILL .*killed_for=heartbeat/)
    assert_equal "#{program.ready(2).last} hello\n", ask(program)
    assert_clean_end(program)
  end

  # As Ctrl-Z does. Nobody can have heard a beat meanwhile, and nobody is to blame. How long that has taken the test says, by the
  # parent's clock.
  def test_all_of_them_stand_still
    path = File.join(Dir.tmpdir, "ringspun-later-#{Process.pid}")
    program = start(<<~RUBY)
      Ringspun::Cluster.const_get(:Supervisor).prepend(Module.new { def now = super + (File.exist?(#{path.dump}) ? 1000 : 0) })
      cluster(workers: 1, heartbeat: 500, on_reload: -> { raise "no" })
    RUBY
    worker, = program.ready
    program.kill_group(:STOP)
    [program.pid, worker].each { |pid| until_state(pid, "T") }
    File.write(path, "")
    program.kill_group(:CONT)
    2.times { |index| program.kill(:HUP) && program.wait_for(/event=not_reloaded/, count: index + 1) } # it has looked between
    assert_equal "#{worker} hello\n", ask(program)
    assert_clean_end(program)
    assert_match(/event=gone .*pid=#{worker} status=0/, program.text)
  ensure
    FileUtils.rm_f(path)
  end

  def test_a_worker_that_is_never_ready
    program = start("cluster(workers: 1, boot: 0.5, backoff: 0.01..0.01) { |w| w.restarts == 0 ? w.wait : w.ready! }")
    program.ready
    assert_match(/event=gone .*status=SIGKILL .*killed_for=boot/, program.text)
    assert_clean_end(program)
  end

  # --- leaks ---

  def test_nothing_is_left_of_workers_that_have_died
    program = start("cluster(workers: 2, settle: 0)")
    program.ready(2)
    before = descriptors(program)
    20.times { |index| program.kill(:KILL, program.ready(index + 2).last) }
    program.wait_for(/event=gone/, count: 20)
    last = program.ready(22).last(2)
    assert_equal before, descriptors(program)
    assert_equal 2, children(program).size
    assert_includes children(program), last.last
    assert_clean_end(program)
  end

  private

  def descriptors(program) = Dir.children("/proc/#{program.pid}/fd").size

  # Zombies among them.
  def children(program) = File.read("/proc/#{program.pid}/task/#{program.pid}/children").split.map { |pid| Integer(pid) }
end
