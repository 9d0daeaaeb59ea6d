# frozen_string_literal: true

require "http_helper"
require_relative "../../runtime/test/cluster/cluster_case"
require_relative "support/mixed_load"
require "support/seeds"

# A server of several processes under clients of every kind, while its workers come and go.
class HTTPLoadTest < ClusterCase
  NIGHTLY = ENV["RINGSPUN_NIGHTLY"] == "1"
  ROUNDS = NIGHTLY ? 30 : 2
  SEEDS = Seeds.of_the_day(1)
  STEPS = NIGHTLY ? 8 : 3

  def start_server(workers, drain: 20, settle: 10)
    start(<<~RUBY)
      $LOAD_PATH.unshift #{File.expand_path("../lib", __dir__).dump}
      require "ringspun/http"
      #{MixedLoad::APP}
      Ringspun::HTTP.run(APP, listen: ["127.0.0.1", 0], workers: #{workers}, drain: #{drain}, settle: #{settle}, backoff: 0.01..0.1)
    RUBY
  end

  def under_load(program)
    load = MixedLoad.new(program.port)
    load.run(3)
    yield load
    load.stop
    load.failures
  ensure
    load&.stop
  end

  def test_reloads
    program = start_server(2)
    program.ready(2)
    failures = under_load(program) do |load|
      ROUNDS.times do |round|
        program.kill(:HUP)
        program.wait_for(/event=reloaded/, count: round + 1)
        load.run(3)
      end
    end
    assert_empty failures
    assert_clean_end(program)
    assert_empty program.text.lines.grep(/connections_cut=[1-9]|block_cut=true/)
  end

  # @return [Socket] a connection that the program has taken, or one of events
  def long_connection(program, path)
    Socket.tcp("127.0.0.1", program.port).tap do |socket|
      socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
      nil until socket.gets == "\r\n"
    end
  end

  def assert_echo(socket)
    socket.write("there?\n")
    assert_equal "there?\n", socket.gets
  end

  def test_a_connection_that_a_program_has_taken_when_its_worker_drains
    program = start_server(1)
    program.ready
    socket = long_connection(program, "/taken")
    program.kill(:HUP)
    program.wait_for(/event=reloaded/)
    assert_echo(socket)
    socket.close
    program.wait_for(/event=gone/)
    assert_clean_end(program)
    assert_empty program.text.lines.grep(/connections_cut=[1-9]|block_cut=true/)
  end

  def test_the_limit_of_a_drain
    program = start_server(1, drain: 1) # must pass
    program.ready
    sockets = %w[/taken /events].map { |path| long_connection(program, path) }
    program.stop
    sockets.each { |socket| nil while socket.gets }
    assert_equal 1, program.count(/block_cut=true/)
    assert_empty program.text.lines.grep(/event=killing/)
  ensure
    sockets&.each(&:close)
  end

  # Each client has one connection at a time.
  def test_deaths_of_workers
    program = start_server(2)
    program.ready(2)
    failures = under_load(program) do |load|
      ROUNDS.times do |round|
        killed = program.ready(2 + round).last
        program.kill(:KILL, killed)
        program.ready(3 + round)
        load.run(3)
        failures = load.failures
        assert_empty failures.reject { |failure| failure.worker.nil? || failure.worker == killed }
        failures.group_by(&:kind).each_value { |failed| assert_operator failed.size, :<=, 2 }
      end
    end
    assert_empty failures
    assert_clean_end(program)
  end

  # Reloads, workers that are killed and workers that are told to end, in any order: what fails is what a killed one had.
  SEEDS.each { |seed| define_method("test_at_random_#{seed}") { at_random(Random.new(seed)) } }

  def at_random(random)
    program = start_server(workers = 1 + random.rand(3), settle: 0) # the end of each is told
    program.ready(workers)
    killed = []
    failed = under_load(program) do |load|
      STEPS.times do
        step(program, random, killed)
        load.run(1 + random.rand(3))
      end
    end
    assert_of_killed(failed, killed)
    assert_clean_end(program)
    assert_empty program.text.lines.grep(/connections_cut=[1-9]|block_cut=true|event=failed/)
  end

  def step(program, random, killed)
    pids = program.ready_pids.values
    case random.rand(4)
    when 0
      reloaded = program.count(/event=reloaded/)
      program.kill(:HUP)
      program.wait_for(/event=reloaded/, count: reloaded + 1)
    when 1
      replaced(program, killed.push(pids.sample(random:)).last, :KILL)
    when 2
      replaced(program, pids.sample(random:), :TERM)
    else reload_and_end(program, pids.sample(random:), random.rand(2).zero?, killed)
    end
  end

  # Another one has its place then.
  def replaced(program, pid, signal)
    program.kill(signal, pid)
    program.wait_until { !program.ready_pids.value?(pid) }
  end

  # One that is about to be replaced, or has been, and may have ended.
  def reload_and_end(program, pid, at_once, killed)
    ends = /event=(reloaded|reload_failed)/
    before = program.count(ends)
    program.kill(:HUP)
    there = there?(program, at_once ? :KILL : :TERM, pid)
    killed << pid if at_once && there
    program.wait_until do
      gone = program.gone
      program.count(ends) > before && gone.include?(pid) && !program.ready_pids.values.intersect?(gone)
    end
  end

  # Whether the signal has found it.
  def there?(program, signal, pid)
    program.kill(signal, pid)
    true
  rescue Errno::ESRCH
    false
  end

  # A client of each kind that had connected, and had not been told yet who serves it, is one of theirs.
  def assert_of_killed(failed, killed)
    assert_empty failed.reject { |failure| (failure.worker.nil? && killed.any?) || killed.include?(failure.worker) }
    failed.group_by(&:kind).each_value { |some| assert_operator some.size, :<=, 2 * killed.size }
  end
end
