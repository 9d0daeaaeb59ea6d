# frozen_string_literal: true

require "jobs_helper"
require "support/fork_server"

# That programs which are forked are like those of a fresh Ruby.
class ForkServerTest < Minitest::Test
  include AnyBackend

  def before_setup
    ForkServer.for("set")
    super
  end

  def teardown
    @programs&.each(&:close)
    super
  end

  def program(code, *arguments, **)
    (@programs ||= []).push(ForkedProgram.ruby("set", code, *arguments, **)).last
  end

  # What it prints.
  def told(...)
    program = program(...)
    assert_predicate program.wait, :success?, program.log
    program.log
  end

  def test_a_program_knows_nothing_of_another_one
    code = "p defined?(Left), defined?($left)\nLeft = 1\n$left = 1"
    2.times { assert_equal "nil\nnil\n", told(code) }
  end

  def test_it_has_its_arguments_environment_and_input
    code = "puts [*ARGV, ENV['MINE'], ENV['PATH'], $stdin.read, $0 == __FILE__, $VERBOSE].inspect"
    assert_equal ["a", "b", "c", ENV.fetch("PATH"), "", true, true].inspect, told(code, "a", "b", env: { "MINE" => "c" }).chomp
    ENV["FORKED"] = "since"
    assert_equal "since", told("print ENV['FORKED']")
  ensure
    ENV.delete("FORKED")
  end

  # That environment is for what the server loads.
  def test_a_server_with_an_environment_and_no_warnings
    quiet = ForkServer.new("set", env: { "LOADS_IN" => "this" }, options: ["-W0"], verbose: false)
    program = ForkedProgram.ruby(quiet, "puts [$VERBOSE, ENV['LOADS_IN'], ENV['MINE']].inspect", env: { "MINE" => "c" })
    assert_predicate program.wait, :success?, program.log
    assert_equal [false, nil, "c"].inspect, program.log.chomp
  ensure
    program&.close
    quiet&.stop
  end

  def test_how_it_ends
    failed = program("raise 'as told'")
    refute_predicate failed.wait, :success?
    assert_match(/program\.rb:1:.* as told \(RuntimeError\)/, failed.log)
    assert_predicate program("exit!(true)").wait, :success?
    assert_equal 3, program("exit 3").wait.exitstatus
    assert_equal "bye", told("at_exit { print 'bye' }")
  end

  def test_it_is_stopped_and_killed
    waits = program("trap('TERM') { print 'term'; exit }\n$stdout.puts\nsleep")
    Thread.pass while waits.log.empty?
    assert_predicate waits, :running?
    assert_predicate waits.stop, :success?
    assert_equal "term", waits.log.strip
    killed = program("sleep")
    killed.kill
    refute_predicate killed, :running?
    assert_raises(Errno::ESRCH) { killed.signal(0) }
  end

  # Whoever waits for any child does not meet it.
  def test_it_is_no_child
    program("sleep")
    assert_raises(Errno::ECHILD) { Process.wait(-1, Process::WNOHANG) }
  end

  def test_programs_end_with_the_server
    server = ForkServer.new("set")
    log = File.join(Dir.mktmpdir, "log")
    file = "#{log}.rb"
    File.write(file, "$stdout.puts 'here'\nsleep")
    pid = server.run(file, [], {}, log, "/")
    Thread.pass until File.exist?(log) && !File.empty?(log)
    server.stop
    sleep 0.001 while File.exist?("/proc/#{pid}/fd") && File.read("/proc/#{pid}/stat").split[2] != "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    nil # it has ended, before or after the file was opened
  ensure
    FileUtils.rm_rf(File.dirname(log))
  end
end
