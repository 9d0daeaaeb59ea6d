# frozen_string_literal: true

require "test_helper"
require "support/seccomp"
require "support/share_of_the_day"
require "support/strands"

# Where a sandbox refuses system calls, one by one, from the start or from some moment on: what can be done another way is, the
# rest is an error where it was called, and nothing ends the process, hangs, or keeps the thread busy.
class SandboxTest < Minitest::Test
  include Strands

  # By day a third of the calls.
  SHARE = ShareOfTheDay.new(3, inputs: %w[engine runtime/ext runtime/test/machine/sandbox_test.rb runtime/test/support])

  # Which stops of the tour are errors, and no others. Of calls that are not named here it is open.
  ERRORS = {
    pidfd_open: [], waitid: [], copy_file_range: [], preadv2: [], epoll_pwait2: [], sched_getaffinity: [], tee: [],
    splice: [:splicing], pidfd_send_signal: [], inotify_init1: [:watching], fallocate: [:files], pwritev2: []
  }.freeze
  # On io_uring it is the ring that does these.
  ERRORS_OF_URING = { fallocate: [], fsync: [], ftruncate: [], fdatasync: [] }.freeze

  # What a machine without io_uring sleeps in, all of it.
  TOGETHER = [:"epoll_wait+epoll_pwait+epoll_pwait2"].freeze

  # CRuby (seen on 3.3): after a Thread.new that fails with EPERM the next one waits for a thread that never begins. Sandboxes
  # answer ENOSYS there, with which libc takes clone(2).
  NOT_OURS = { "EPERM" => [:clone3] }.freeze
  # Without it CRuby ends the process itself.
  CRUBYS_OWN = %i[fcntl].freeze

  PRELUDE = <<~'RUBY'
    require "ringspun"
    require "socket"
    require "tmpdir"
    require "support/patience"
    require "support/seccomp"
    require "support/tour"
    $stdout.sync = true

    def machine = Ringspun::Machine.current

    # A machine that spins would look for something to do all the time.
    def looks_while_asleep
      before = machine.metrics[:polls]
      machine.sleep(0.05)
      machine.metrics[:polls] - before
    end

    def tell(results, reference)
      wrong = results.reject { |name, result| result == reference[name] || result.is_a?(Exception) }
      late = results.select { |_, result| result.is_a?(Ringspun::TimeoutError) }
      puts "other results: #{wrong}" if wrong.any?
      puts "late: #{late}" if late.any?
      puts "errors: #{results.select { |_, result| result.is_a?(Exception) }.keys.sort.join(" ")}"
    end

    def refuse_and_tour(call, error, from_the_start, folder, reference)
      refuse = -> { call.to_s.split("+").each { |one| Seccomp.refuse(one.to_sym, error) } }
      refuse.call if from_the_start
      Ringspun.run do
        machine.sleep(0.001)
        refuse.call unless from_the_start
        tell(Tour.new(folder).take.results, reference)
        looks = looks_while_asleep
        puts "spins: #{looks} looks" if looks > 1000
      end
    rescue Ringspun::UnsupportedError, SystemCallError => no_machine
      puts "no machine: #{no_machine.class}"
    end

    # In a process of its own, which must end well.
    def report_on(call, ...)
      reader, writer = IO.pipe
      errors = File.open("#{Dir.tmpdir}/ringspun-sandbox-#{Process.pid}", "w+")
      File.unlink(errors)
      pid = fork do
        $stdout.reopen(writer)
        $stderr.reopen(errors)
        refuse_and_tour(call, ...)
        exit!(0)
      end
      writer.close
      report = Thread.new { reader.read }
      waiter = Process.detach(pid)
      hangs = Patience.new(30).until_true { |left| waiter.join(left) }.nil?
      Process.kill(:KILL, pid) if hangs
      status = waiter.value
      puts "#{call}:", report.value.lines.map { |line| "  #{line}" }
      puts "  hangs" if hangs
      puts "  ended by #{status}", errors.tap(&:rewind).readlines.map { |line| "  #{line}" } unless status.success?
    end

    error, moment, *calls = ARGV
    Dir.mktmpdir do |folder|
      reference = Ringspun.run { Tour.new(folder).take.results }
      errors = reference.select { |_, result| result.is_a?(Exception) }
      abort "without a sandbox: #{errors}" if errors.any?
      Ringspun::Machine.current.close
      calls.each do |call|
        Dir.mkdir(own_folder = "#{folder}/#{call}")
        report_on(call.to_sym, Errno.const_get(error), moment == "start", own_folder, reference)
      end
    end
  RUBY

  def setup = GC.stress = false # what runs here runs in other processes

  # Of a process, the call to its report.
  def reports(error, moment, calls)
    answer = ruby_child(PRELUDE, error, moment, *calls.map(&:to_s), timeout: 300)
    assert_predicate answer.status, :success?, answer.err
    assert_empty answer.err
    answer.out.split(/^([\w+]+):\n/).drop(1).each_slice(2).to_h { |call, lines| [call.to_sym, lines.lines.map(&:strip)] }
  end

  def expected_errors(call, backend)
    (backend == :uring && ERRORS_OF_URING[call]) || ERRORS[call]
  end

  def assert_survived(call, lines, backend, from_the_start)
    allowed = /\A#{from_the_start ? "(errors|no machine)" : "errors"}:/
    assert_empty lines.grep_v(allowed), "#{call} refused:\n#{lines.join("\n")}"
    expected = expected_errors(call, backend)
    return unless expected

    assert_equal "errors: #{expected.sort.join(" ")}".strip, lines.last, call
  end

  # As when the user has no watches left, or the kernel no memory.
  %w[ENOSPC ENOMEM].each do |error|
    define_method("test_epoll_ctl_that_is_answered_#{error}") do
      backend = Ringspun.run { |machine| machine.backend.name }
      reports(error, "moment", [:epoll_ctl]).each { |call, lines| assert_survived(call, lines, backend, false) }
    end
  end

  # Words that mean later, from a wait that never comes to anything else.
  %w[ENOMEM EAGAIN].each do |error|
    define_method("test_waits_that_are_always_answered_#{error}") do
      backend = Ringspun.run { |machine| machine.backend.name }
      calls = [:io_uring_enter, :epoll_pwait2, *TOGETHER]
      reports(error, "moment", calls).each { |call, lines| assert_survived(call, lines, backend, false) }
    end
  end

  { "start" => "ENOSYS", "moment" => "EPERM" }.each do |moment, error|
    define_method("test_calls_that_are_answered_#{error}_from_#{moment == "start" ? "the start" : "a moment"}_on".tr(" ", "_")) do
      backend = Ringspun.run { |machine| machine.backend.name }
      calls = SHARE.of(Seccomp::NUMBERS.keys + TOGETHER) - CRUBYS_OWN - NOT_OURS.fetch(error, [])
      reports = reports(error, moment, calls)
      assert_equal calls, reports.keys
      reports.each { |call, lines| assert_survived(call, lines, backend, moment == "start") }
    end
  end

  # All numbers below the limit are taken, but those that the block gives back.
  NO_DESCRIPTOR_LEFT = <<~'RUBY'
    def without_descriptors
      limit = Process.getrlimit(:NOFILE)
      spare = IO.sysopen(File::NULL)
      taken = (0...spare).reject { |fd| File.exist?("/proc/self/fd/#{fd}") }.map { IO.sysopen(File::NULL) }
      Process.setrlimit(:NOFILE, [*taken, spare].max + 1, limit.last)
      yield
    ensure
      Process.setrlimit(:NOFILE, *limit)
    end
  RUBY

  def test_children_when_no_descriptor_is_left
    assert_child "3 4 5\n", <<~RUBY
      #{NO_DESCRIPTOR_LEFT}
      Ringspun.run do |machine|
        machine.sleep(0.001)
        children = [3, 4, 5].map { |status| fork { machine.sleep(0.02); exit!(status) } }
        without_descriptors do
          first = machine.waitid(children[0])
          Process.wait(children[1])
          puts [first, $?, Ringspun.wait_process(children[2])].map(&:exitstatus).join(" ")
        end
      end
    RUBY
  end

  def test_copies_when_no_descriptor_is_left
    assert_child "5 bytes\n", <<~RUBY
      #{NO_DESCRIPTOR_LEFT}
      Ringspun.run do |machine|
        from, sender = machine.socketpair
        to, receiver = machine.socketpair
        machine.write(sender, "bytes")
        machine.shutdown(sender, :WR)
        without_descriptors do
          count = Ringspun::Stream.new(from).copy_to(to)
          machine.read(receiver, bytes = +"")
          puts "\#{count} \#{bytes}"
        end
      end
    RUBY
  end

  # The machine says what has happened to it, to each that would wait.
  def test_what_is_told_when_the_wait_is_refused
    expected = "io_uring_enter was answered Operation not permitted, and this machine can wait for no input"
    on_epoll = Ringspun.run { |machine| machine.backend.name } != :uring
    expected = expected.sub("io_uring_enter", "epoll_wait") if on_epoll
    assert_child "true true slept\n", <<~RUBY
      require "support/seccomp"
      Ringspun.run do |machine|
        reader, = machine.pipe
        first = machine.spin { machine.read(reader, +"") }
        machine.yield
        %i[io_uring_enter epoll_wait epoll_pwait epoll_pwait2].each { |call| Seccomp.refuse(call, Errno::EPERM) }
        told = [first, machine.spin { machine.poll(reader, :readable) }].map do |strand|
          strand.join
        rescue Ringspun::UnsupportedError => error
          error.message.include?(#{expected.inspect})
        end
        machine.sleep(0.001)
        puts [*told, "slept"].join(" ")
      end
    RUBY
  end
end
