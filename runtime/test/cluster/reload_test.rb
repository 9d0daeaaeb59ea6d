# frozen_string_literal: true

require_relative "cluster_case"
require "tmpdir"

# Ringspun::Cluster on SIGHUP.
class ClusterReloadTest < ClusterCase
  def test_not_a_request_fails_under_load
    program = start("cluster(workers: 2)")
    with_load(program, clients: 6) do |load|
      5.times do |index|
        program.kill(:HUP)
        program.wait_for(/event=reloaded/, count: index + 1)
        load.run(20)
      end
      load.stop
      assert_empty load.failed
    end
    assert_clean_end(program)
    assert_equal 12, program.count(/event=gone .* status=0 /)
    assert_empty program.text.lines.grep(/connections_cut=[1-9]|block_cut=true/)
  end

  def test_a_worker_that_has_as_many_connections_as_it_may
    program = start(<<~RUBY)
      cluster(workers: 2) { |worker| worker.serve(max_connections: 1) { |stream| answer(stream, worker) } }
    RUBY
    with_load(program, clients: 6) do |load|
      3.times do |index|
        program.kill(:HUP)
        program.wait_for(/event=reloaded/, count: index + 1)
        load.run(10)
      end
      load.stop
      assert_empty load.failed
    end
    assert_clean_end(program)
  end

  def test_new_workers_accept_before_the_old_ones_drain
    program = start("cluster(workers: 2)")
    old = program.ready(2)
    program.kill(:HUP)
    program.wait_for(/event=reloaded/)
    program.wait_for(/event=gone/, count: 2)
    events = program.text.lines.filter_map { |line| line[/event=(ready|drained) worker=\d/] }
    [0, 1].each do |index|
      ready = events.each_index.select { |at| events[at] == "event=ready worker=#{index}" }
      assert_operator ready.last, :<, events.index("event=drained worker=#{index}")
    end
    refute_includes old, ask(program).to_i
    assert_clean_end(program)
  end

  def test_the_block_and_a_hook_read_what_is_new
    Dir.mktmpdir do |folder|
      File.write("#{folder}/config", "one")
      program = start(<<~RUBY)
        config = nil
        read = -> { config = File.read("#{folder}/config") }
        read.call
        cluster(workers: 1, on_reload: read) do |worker|
          own = File.read("#{folder}/config")
          worker.serve { |stream| stream.write_line("\#{config} \#{own}") }
        end
      RUBY
      assert_equal "one one\n", ask(program)
      File.write("#{folder}/config", "two")
      program.kill(:HUP)
      program.wait_for(/event=reloaded/)
      program.wait_for(/event=gone/)
      assert_equal "two two\n", ask(program)
      assert_clean_end(program)
    end
  end

  def test_a_hook_that_raises_reloads_nothing
    program = start('cluster(workers: 1, on_reload: -> { raise "wrong" })')
    pid, = program.ready
    program.kill(:HUP)
    program.wait_for(/event=not_reloaded error=".*wrong/)
    assert_equal "#{pid} hello\n", ask(program)
    assert_clean_end(program)
    assert_equal 1, program.count(/event=started/)
  end

  def test_new_workers_that_do_not_come_up_leave_the_old_ones
    program = start(<<~RUBY)
      cluster(workers: 2) do |worker|
        raise "new and broken" if worker.restarts == 1
        worker.serve { |stream| answer(stream, worker) }
      end
    RUBY
    old = program.ready(2)
    program.kill(:HUP)
    program.wait_for(/event=reload_failed worker=0/)
    assert_includes old, ask(program).to_i
    program.kill(:HUP) # worker 0 is at its third, and 1 at its second
    program.wait_for(/event=reload_failed worker=1/)
    assert_equal 3, program.ready(3).uniq.size
    assert_clean_end(program)
  end

  # The first of the new ones is ready only when the test says so.
  GATED = <<~'RUBY'
    cluster(workers: 2) do |worker|
      if worker.restarts == 1 && worker.index.zero?
        say "at the gate"
        Ringspun::Machine.current.sleep(0.001) until worker.stopping? || File.exist?(GATE)
      end
      worker.serve { |stream| answer(stream, worker) }
    end
  RUBY

  def with_gate
    Dir.mktmpdir do |folder|
      program = start("GATE = '#{folder}/gate'\n#{GATED}")
      program.ready(2)
      program.kill(:HUP)
      program.wait_for(/^at the gate$/)
      yield program, "#{folder}/gate"
    end
  end

  def test_a_hangup_while_it_reloads_reloads_once_more
    with_gate do |program, gate|
      3.times { program.kill(:HUP) }
      File.write(gate, "")
      program.wait_for(/event=reloaded/, count: 2)
      assert_clean_end(program)
      assert_equal 2, program.count(/event=reloading/)
      assert_equal 6, program.count(/event=started/)
    end
  end

  def test_a_term_while_it_reloads
    with_gate do |program, _|
      assert_clean_end(program)
      assert_equal 0, program.count(/event=reloaded/)
      assert_equal 3, program.count(/event=gone .*status=0/)
    end
  end

  def test_the_old_worker_dies_while_it_reloads
    with_gate do |program, gate|
      old, = program.wait_for(/event=started worker=0 pid=(\d+)/)
      program.kill(:KILL, Integer(old[1]))
      program.wait_for(/event=gone worker=0 .*status=SIGKILL/)
      File.write(gate, "")
      program.wait_for(/event=reloaded/)
      assert_equal 4, program.ready(4).uniq.size
      assert_clean_end(program)
      assert_equal 4, program.count(/event=started/)
    end
  end

  def test_the_new_worker_dies_while_it_reloads
    with_gate do |program, _|
      program.kill(:KILL, Integer(program.wait_for(/event=started worker=0 pid=(\d+)/, count: 2).last[1]))
      program.wait_for(/event=reload_failed worker=0/)
      program.kill(:HUP)
      program.wait_for(/event=reloaded/)
      assert_clean_end(program)
    end
  end

  # It comes up as any other, at once.
  def test_a_slot_that_is_empty_because_its_worker_fails
    Dir.mktmpdir do |folder|
      program = start(<<~RUBY)
        cluster(workers: 1, backoff: 1000..1000) do |worker|
          raise "no config" unless File.exist?("#{folder}/config")
          worker.serve { |stream| answer(stream, worker) }
        end
      RUBY
      program.wait_for(/event=gone .*restart_in=1000/)
      File.write("#{folder}/config", "")
      program.kill(:HUP)
      program.wait_for(/event=reloaded/)
      assert_match(/hello/, ask(program))
      assert_clean_end(program)
    end
  end
end
