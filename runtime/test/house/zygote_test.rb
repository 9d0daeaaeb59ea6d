# frozen_string_literal: true

require "test_helper"
require "tmpdir"

# Children that are forked from a process that has booted already: no program can tell them from a fresh Ruby, and no test.
class ZygoteTest < Minitest::Test
  include AnyBackend

  # The programs run in processes of their own; a collection at every allocation of this one would find nothing.
  def setup = GC.stress = false

  # What both say of a program, and how it has ended.
  def told(code, *arguments, **)
    fresh, forked = [true, false].map do |each|
      before = Zygote.forked
      answer = ruby_child("require 'ringspun'\n#{code}", *arguments, fresh: each, **)
      assert_equal each, Zygote.forked == before
      status = answer.status
      [answer.out, answer.err, status.exitstatus, status.termsig, status.success?, status.exited?, status.signaled?,
       status.to_s.sub(status.pid.to_s, "PID")]
    end
    assert_equal fresh, forked
    forked
  end

  # --- what a program finds ---

  FINDS = <<~'RUBY'
    p __FILE__, __LINE__, __dir__, __method__, $0, $PROGRAM_NAME, self, caller(0), binding.local_variables
    p ARGV, ARGV.map { |each| [each.frozen?, each.encoding] }
    p "é".encoding, __ENCODING__, Encoding.default_external, Encoding.default_internal, Encoding.find("filesystem")
    p $VERBOSE, $DEBUG, %i[deprecated experimental].map { |name| Warning[name] }
    p $LOAD_PATH, $LOADED_FEATURES.reject { |path| path.end_with?("/zygote_process.rb") }.sort
    p (Object.constants - [:ZygoteProcess]).sort, Object.private_instance_methods(false).sort, Object.instance_methods(false)
    p ENV.sort, Dir.pwd, File.umask, Process.getpgrp, Process.getpriority(Process::PRIO_PROCESS, 0), Process.getrlimit(:NOFILE)
    p $stdin.read, [$stdin, $stdout, $stderr].map { |io| [io.inspect, io.fileno, io.sync, io.close_on_exec?, io.external_encoding] }
    p Dir.children("/proc/self/fd").map { |fd| [fd, File.readlink("/proc/self/fd/#{fd}")[/\A[\w:]+/]] rescue 0 }.sort_by(&:to_s)
    p File.readlines("/proc/self/status").grep(/^Sig(Blk|Ign|Cgt)/), %w[INT TERM CHLD PIPE ALRM].map { |name| trap(name, "DEFAULT") }
    p Thread.list.size, Thread.main == Thread.current, Thread.current.name, Dir.children("/proc/self/task").size
    p Ringspun::Machine.current?, Fiber.current_scheduler, Ractor.count, GC.stress, GC.disable
    p begin Process.wait rescue $!.class end, Process.last_status, $?, $~
    p Process.pid == $$, Process.pid == Integer(File.readlink("/proc/self"))
  RUBY

  def test_what_a_program_finds
    assert_equal 1, told(FINDS, "a", "é").first.scan("\"é\"").size
    told("p Gem.loaded_specs.keys.sort, ENV.sort, $LOAD_PATH; require 'minitest'", env: { "RUBYOPT" => "-rbundler/setup" })
  end

  # The order of the variables is that in which somebody has set them, which says nothing: a zygote keeps its own.
  def test_a_variable_that_is_set_again
    told("")
    home = ENV.delete("HOME")
    ENV["HOME"] = home
    told("p ENV.sort")
  ensure
    ENV["HOME"] ||= home
  end

  # What is random is not the same in two of them.
  def test_random_numbers
    refute_equal(*Array.new(2) { ruby_child("p rand, Random.seed, Random.urandom(9)").out })
  end

  # --- how a program ends ---

  {
    well: "puts 1",
    by_exit: "exit 3",
    by_exit_with_a_bang: "at_exit { puts 1 }; print 2; exit! 4",
    by_abort: "abort 'why'",
    by_an_error: "def one = raise(KeyError, 'lost')\nbegin 1.times { one } rescue raise 'b' end",
    by_the_end_of_its_text: "puts 1\n__END__\nputs 2",
    by_a_signal_exception: "raise SignalException, 'TERM'",
    by_a_handler: "trap(:INT) { puts 1; exit 5 }; Process.kill(:INT, $$); sleep",
    in_at_exit: "at_exit { puts 1; exit 7 }; at_exit { puts 2; raise 'x' }; END { puts 3 }; raise 'y'",
    in_a_thread: "other = Thread.new { sleep; ensure puts 1 }; Thread.pass until other.stop?; Thread.new { exit 6 }.join; puts 2",
    in_a_strand: "Ringspun.run { |machine| machine.spin { raise 'in a strand' }.join }"
  }.each { |name, code| define_method("test_the_end_#{name}") { told(code) } }

  %w[INT TERM KILL].each do |signal|
    define_method("test_the_end_by_#{signal}") do
      ended = told("at_exit { puts 1 }; $stdout.sync = true; Process.kill(:#{signal}, $$); sleep")
      assert_equal Signal.list.fetch(signal), ended[3]
    end
  end

  def test_what_a_parser_says
    out, err, = told("unused = 1\nputs (1)\n1 == 1\ndef twice = 1\ndef twice = 2")
    assert_equal "1\n", out
    assert_match(/-e:4: warning: /, err)
    assert_match(/syntax error/, told("def").at(1))
    told("# é\nputs 'é'.bytesize, \"\#{__LINE__}\"\nputs DATA rescue puts $!.class\n=begin\n=end\nBEGIN { puts 0 }")
  end

  # --- what it gets from the test ---

  def test_the_environment
    ENV["RINGSPUN_TEST_A"] = "a"
    code = "p ENV.to_h.values_at('RINGSPUN_TEST_A', 'RINGSPUN_TEST_B'); system('echo $RINGSPUN_TEST_A$RINGSPUN_TEST_B')"
    env = { "RINGSPUN_TEST_B" => "b" }
    answers = [{}, env, { "RINGSPUN_TEST_A" => nil, **env }].map { |each| ruby_child(code, env: each).out }
    assert_equal ["[\"a\", nil]\na\n", "[\"a\", \"b\"]\nab\n", "[nil, \"b\"]\nb\n"], answers
  ensure
    ENV.delete("RINGSPUN_TEST_A")
  end

  # Ruby has read it before a zygote could change it.
  def test_an_environment_that_takes_a_boot
    [{ "RUBYOPT" => "-W0" }, { "LC_ALL" => "C" }, { "RUBY_GC_HEAP_INIT_SLOTS" => "20000" }, { "RUBYLIB" => "/nowhere" },
     { "LD_PRELOAD" => ENV.fetch("LD_PRELOAD", "") }].each do |env|
      before = [Zygote.fresh, Zygote.forked]
      assert_predicate ruby_child("", env:).status, :success?
      assert_equal [1, 0], [Zygote.fresh, Zygote.forked].zip(before).map { |now, then_| now - then_ }, env
    end
  end

  def test_the_folder_and_the_group
    Dir.chdir("/") { assert_equal "\"/\"\n", told("p Dir.pwd").first }
    reader, writer = IO.pipe
    child = Zygote.start("p Process.getpgrp == $$", out: writer, err: writer, pgroup: true)
    writer.close
    assert_equal "true\n", reader.read
    assert_predicate child.wait(30), :success?
  ensure
    [reader, writer].each(&:close)
  end

  # --- what a zygote of a test's own has loaded ---

  OWN = Zygote.new("LOADED = [1]\nlocal = 2") { {} }
  LOUD = Zygote.new("warn 'too loud'") { {} }

  def test_a_prelude
    assert_equal "[1]\nnil\n[1, 3]\n[1]\n", ["p LOADED, defined?(local)", "p LOADED << 3", "p LOADED"].sum("") { |code|
      ruby_child(code, from: OWN).out
    }
  end

  # The children cannot say it, and somebody has to.
  def test_a_warning_of_a_prelude
    assert_match(/a zygote has said: too loud/, assert_raises(RuntimeError) { ruby_child("", from: LOUD) }.message)
  end

  # --- children of children, and several ---

  def test_children_of_the_child
    told("p Process.wait2(fork { exit 5 }).last.exitstatus, system('exit 3'), $?.exitstatus, `echo x`, IO.popen('cat', &:read)")
  end

  # Each says that it is there, and ends when all have.
  def test_several_at_the_same_time
    said, saying = IO.pipe
    gate, opening = IO.pipe
    paths = [saying, gate].map { |io| "/proc/#{$$}/fd/#{io.fileno}" }
    threads = Array.new(3) { Thread.new { ruby_child("File.write(ARGV[0], '.'); p File.read(ARGV[1])", *paths).out } }
    assert_equal "...", said.read(3)
    opening.close
    assert_equal ["\"\"\n"] * 3, threads.map(&:value)
  ensure
    [said, saying, gate, opening].each(&:close)
  end

  # It asks the same zygote.
  def test_a_child_of_a_forked_test
    status = in_child { exit!(ruby_child("exit 9").status.exitstatus) }
    assert_equal 9, status.exitstatus
  end

  def test_none_is_a_child_of_this_process
    ruby_child("")
    assert_raises(Errno::ECHILD) { Process.wait }
  end

  # --- ends that do not come by themselves ---

  def test_one_that_hangs_is_killed
    error = assert_raises(Minitest::Assertion) { ruby_child("sleep", timeout: 0.05) } # must pass
    assert_equal "the Ruby child ran longer than 0.05 s: sleep", error.message
  end

  # Or a test would wait for it for ever, and not say what it waits for. The one that is left ends with the pipe in the folder.
  def test_one_that_leaves_a_process_behind_which_has_its_output
    Dir.mktmpdir do |folder|
      File.mkfifo(pipe = File.join(folder, "pipe"))
      error = assert_raises(Minitest::Assertion) { ruby_child("fork { File.read(ARGV[0]) }", pipe, timeout: 2) } # must pass
      assert_match(/\Athe Ruby child has ended, and 2 s later a process that it has left behind still has its output/,
                   error.message)
    ensure
      File.write(pipe, "")
    end
  end

  # Whatever becomes of the tests, the zygote and its children end when the last of them has.
  TESTS = <<~'RUBY'
    require "support/zygote"
    reader, writer = IO.pipe
    code = 'puts File.read("/proc/#{Process.ppid}/stat")[/\) \w (\d+)/, 1]; $stdout.flush; sleep'
    child = Zygote.start(code, out: writer, err: writer)
    puts Zygote.fresh, Zygote.forked, reader.gets, child.pid
    $stdout.flush
  RUBY

  ["exit", "exit!(true)", "Process.kill(:KILL, $$)"].each do |ending|
    define_method("test_it_ends_after_#{ending}") do
      answer = ruby_child("#{TESTS}\n#{ending}")
      fresh, forked, *processes = answer.out.lines.map { |line| Integer(line) }
      assert_equal [1, 1, 2], [fresh, forked, processes.size], answer.err
      Thread.pass while processes.any? { |pid| alive?(pid) }
    end
  end

  private

  # Whoever is the parent now may not have waited for it yet.
  def alive?(pid)
    !File.read("/proc/#{pid}/stat").match?(/\) [ZX]/)
  rescue SystemCallError
    false
  end
end
