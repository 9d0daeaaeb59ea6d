# frozen_string_literal: true

# Small programs that were written for the gem `concurrently`: apart/concurrently_gem_test.rb runs them with the gem, and with the
# file of ours that has its name. Loaded as a program's main file, this one prints what each has for its value, or raises.
module ConcurrentlyPrograms
  # Seconds in which nobody looks, and all the times below come due: long beside those for which a busy machine runs nobody.
  STALL = 0.06

  class << self
    def list = @list ||= {}

    def program(name, &block) = list[name] = block

    def stall
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + STALL
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
    end

    def run_all
      list.each { |name, program| puts "#{name}: #{answer_of(program)}" }
    end

    private

    def answer_of(program)
      Concurrently::EventLoop.current.reinitialize!
      Concurrently::Proc.error_log_output = nil
      common("=> #{program.call.inspect}")
    rescue Exception => error
      common("#{error.class}: #{error.message}")
    end

    # What cannot be the same: the module of a name, and a number of an object.
    def common(text) = text.gsub("Ringspun::", "").gsub("Concurrently::", "").gsub(/Evaluation id: \w+/, "Evaluation id")
  end

  # --- the forms ---

  program("call") { concurrent_proc { |a, b = 2, *c| [a, b, c] }.call(1) }
  program("call that waits") { concurrent_proc { wait(0) && :value }.call }
  program("call by brackets") { concurrent_proc { |a| a }[1] }
  program("call that gives an evaluation") { concurrent_proc { concurrently { 3 } }.call }
  program("call that waits and gives an evaluation") { concurrent_proc { wait(0) && concurrently { 3 } }.call.class }
  program("call that raises") { concurrent_proc { raise "broken" }.call }
  program("call that throws") { catch(:out) { concurrent_proc { throw :out }.call } }
  program("call that raises what nobody should rescue") { concurrent_proc { raise Interrupt, "out" }.call }
  program("call_nonblock") { concurrent_proc { :value }.call_nonblock }
  program("call_nonblock that waits") { concurrent_proc { wait(0) && :value }.call_nonblock.await_result }
  program("call_nonblock that gives an evaluation") { concurrent_proc { concurrently { 3 } }.call_nonblock.class }
  program("call_nonblock that raises") { concurrent_proc { raise "broken" }.call_nonblock }
  program("call_detached") { concurrent_proc { |a| a }.call_detached(1).await_result }
  program("call_and_forget") do
    seen = []
    [concurrent_proc { |a| seen << a }.call_and_forget(1), seen.dup, wait(0), seen]
  end
  program("a proc's own methods") do
    made = concurrent_proc { |a, b| [a, b] }
    [made.arity, concurrent_proc { |*all| all }.arity, made.lambda?, made.class]
  end

  # --- waiting ---

  program("wait") { [wait(0), wait(0.0001), wait(-1), wait(1/10_000r)] }
  program("wait for no number") do
    wait nil
  rescue TypeError => error
    error.class
  end
  program("waits in their order") do
    order = []
    [0.04, 0.01].each { |seconds| concurrently { wait(seconds) && order << seconds } }
    wait 0.08
    order
  end
  program("starts in their order") do
    order = []
    concurrently { order << :a and wait(0) and order << :c }
    concurrently { order << :b }
    2.times { wait 0 }
    order
  end
  program("a limit") { concurrently { wait 1 }.await_result(within: 0) }
  program("a limit that is a fraction") { concurrently { wait 1 }.await_result(within: 1/1000r) }
  program("a limit with a result") { concurrently { wait 1 }.await_result(within: 0, timeout_result: nil) }
  program("a limit of nil") { concurrently { 1 }.await_result(within: nil, timeout_result: 7) }
  program("keys of others") { concurrently { 1 }.await_result({ other: 1, "more" => 2 }) }
  program("keys of others for await_resume!") { await_resume!({ within: 0, timeout_result: 5, other: 1 }) }
  program("a block of await_result") do
    [concurrently { 3 }.await_result { |result| result * 2 }, concurrently { raise "x" }.await_result(&:message),
     concurrently { wait 1 }.await_result(within: 0) { |error| error.class }]
  end
  program("a result that is an error") { concurrently { RuntimeError.new("value") }.await_result }
  program("several that wait for one") do
    slow = concurrently { wait(0.0001) && :value }
    2.times.map { concurrently { slow.await_result } }.map(&:await_result)
  end
  program("await_fastest") do
    slow = concurrently { wait 1 }
    fast = concurrently { wait 0.0001 }
    await_fastest(slow, fast).equal?(fast)
  end
  program("await_fastest with a limit") { await_fastest(*Array.new(2) { concurrently { wait 1 } }, { within: 0 }) }
  program("await_fastest of one twice") { concurrently { 1 }.then { |one| await_fastest(one, one).equal?(one) } }
  program("nothing to wait for") do
    await_resume!
  rescue Concurrently::Error => error
    error.message.lines.first.chomp
  end

  # --- the order within a pass ---

  program("starts go before those whose wait is over") do
    count = 0
    long = concurrent_proc { wait(0.01) && count += 1 }.call_nonblock
    short = concurrent_proc { wait(0) && count += 1 }.call_nonblock
    start = concurrent_proc { count += 1 }.call_detached
    ConcurrentlyPrograms.stall
    wait 0
    [count += 1, *[start, short, long].map(&:await_result)]
  end
  program("who is resumed goes before those whose wait is over") do
    order = []
    [0.01, 0].each { |seconds| concurrent_proc { wait(seconds) && order << seconds }.call_nonblock }
    resumed = concurrent_proc { await_resume! && order << :resumed }.call_nonblock
    ConcurrentlyPrograms.stall
    resumed.resume! true
    wait 0
    order
  end
  program("one that has concluded itself waits again") do
    seen = []
    evaluation = concurrent_proc do
      Concurrently::Evaluation.current.conclude_to(1)
      seen << await_resume!
    end.call_nonblock
    seen << evaluation.waiting? << evaluation.resume!(2) << evaluation.waiting?
    wait 0
    seen << evaluation.await_result
  end
  program("what is added goes in the next pass") do
    order = []
    concurrently do
      concurrently { order << :inner }
      order << :outer
    end
    concurrent_proc { wait(0) && order << :time }.call_nonblock
    2.times { wait 0 }
    order
  end
  program("an IO goes before starts") do
    order = []
    reader, writer = IO.pipe
    concurrent_proc { reader.await_readable && order << :io }.call_nonblock
    concurrently { order << :start }
    writer << "x"
    wait 0
    order
  ensure
    [reader, writer].each(&:close)
  end
  program("wait 0 again and again lets all others run") do
    order = []
    concurrent_proc { 3.times { wait(0) && order << :a } }.call_nonblock
    concurrent_proc { 3.times { wait(0) && order << :b } }.call_nonblock
    concurrently { 3.times { order << :c && wait(0) } }
    4.times { wait 0 }
    order
  end

  # --- results and limits that are due at the same time ---

  # The limit is due as well when the loop comes to look, but later than what it is the limit of.
  def self.late(name, &)
    program("late: #{name}") do
      concurrently { ConcurrentlyPrograms.stall }
      instance_exec({ within: 0.05, timeout_result: :late }, &)
    end
  end

  late("await_result") { |limit| concurrent_proc { wait(0.04) && :value }.call_nonblock.await_result(limit) }
  late("await_fastest") do |limit|
    first = concurrent_proc { wait 0.04 }.call_nonblock
    await_fastest(first, concurrent_proc { wait 1 }.call_nonblock, limit).equal?(first)
  end
  late("await_resume!") do |limit|
    me = Concurrently::Evaluation.current
    concurrent_proc { wait(0.04) && me.resume!(:value) }.call_nonblock
    await_resume! limit
  end
  late("conclude_to") do |limit|
    waiting = concurrent_proc { wait 1 }.call_nonblock
    concurrent_proc { wait(0.04) && waiting.conclude_to(:value) }.call_nonblock
    waiting.await_result(limit)
  end
  # The byte is written before the stall, and the limit must not be over by then: the gem would take the limit first.
  program("late: await_readable") do
    reader, writer = IO.pipe
    concurrently { ConcurrentlyPrograms.stall if writer << "x" }
    reader.await_readable(within: 0.05, timeout_result: :late)
  ensure
    [reader, writer].each(&:close)
  end
  late("who is resumed by a third one") do |limit|
    waiting = concurrent_proc { await_resume! }.call_nonblock
    concurrent_proc { wait(0.04) && waiting.resume!(:value) }.call_nonblock
    waiting.await_result(limit)
  end
  late("who is resumed by one that has just started") do |limit|
    waiting = concurrent_proc { await_resume! }.call_nonblock
    concurrently { ConcurrentlyPrograms.stall || waiting.resume!(:value) }
    waiting.await_result(limit)
  end
  late("an IO that is written to too late") do |limit|
    reader, writer = IO.pipe
    concurrently { ConcurrentlyPrograms.stall || writer << "x" }
    [reader.await_readable(limit), concurrently { reader.await_readable && :readable }.await_result(limit)]
  ensure
    [reader, writer].each(&:close)
  end
  late("a result at two removes") do |limit|
    concurrent_proc { concurrent_proc { wait(0.04) && :value }.call }.call_nonblock.await_result(limit)
  end

  # --- evaluations ---

  program("resume!") do
    waiting = concurrent_proc { await_resume! }.call_nonblock
    [waiting.waiting?, waiting.concluded?, waiting.resume!(1), waiting.waiting?, waiting.await_result]
  end
  program("resume! of who does not wait") { concurrently { 1 }.resume! }
  program("resume! twice") { concurrent_proc { await_resume! }.call_nonblock.then { |one| 2.times { one.resume! } } }
  program("resume! of the root") { Concurrently::Evaluation.current.resume! }
  program("conclude_to") do
    ended = []
    waiting = concurrent_proc do
      wait 1
    ensure
      ended << :ensure
    end.call_nonblock
    [waiting.conclude_to(:value), ended, waiting.await_result]
  end
  program("conclude_to before it starts") { concurrently { raise "never" }.then { |one| [one.conclude_to(1), one.await_result] } }
  program("conclude_to by itself") { concurrently { Concurrently::Evaluation.current.conclude_to(1) && 2 }.await_result }
  program("conclude_to an error") do
    concurrent_proc { wait 1 }.call_nonblock.tap { |one| one.conclude_to(KeyError.new("x")) }.await_result
  end
  program("conclude_to twice") { concurrently { 1 }.tap(&:await_result).conclude_to(2) }
  program("Cancelled") do
    seen = nil
    concurrent_proc do
      wait 1
    rescue Exception => error
      seen = [error.class.name[/\w+\z/], error.is_a?(StandardError)]
      raise
    end.call_nonblock.conclude_to(nil)
    seen
  end
  program("values") do
    one = concurrently { Concurrently::Evaluation.current[:a] = 1 }
    [one.await_result, one[:a], one[:b], one.keys, one.key?(:a), one.key?(:b)]
  end
  program("classes of evaluations") do
    own = Class.new(Concurrently::Proc::Evaluation)
    [Concurrently::Evaluation.current.class, concurrently { Concurrently::Evaluation.current.class }.await_result,
     concurrent_proc(own) { Concurrently::Evaluation.current.instance_of?(own) }.call]
  end

  # --- errors ---

  program("errors that end an evaluation") do
    [StandardError, ScriptError, SecurityError, SystemStackError, NotImplementedError].map do |kind|
      concurrently { raise kind, "broken" }.await_result(&:class)
    end
  end
  program("handlers") do
    told = []
    failing = concurrent_proc { raise "broken" }
    failing.on(:error) { |error| told << [:proc, error.message] }
    handler = Concurrently::Proc.on(:error) { |error| told << [:class, error.message, self.class] }
    failing.call_detached.await_result { told << :awaited }
    handler.cancel
    told
  end
  program("a class that sees its errors") do
    told = []
    own = Class.new(Concurrently::Proc) do
      define_method(:trigger) do |*arguments|
        told << arguments
        super(*arguments)
      end
    end
    failing = own.new { raise "broken" }
    failing.on(:error) { |error| told << error.message }
    late = own.new { wait(0) && raise("late") }
    late.define_singleton_method(:trigger) { |event, error| told << [:own, event, error.message] }
    [failing.call_nonblock, failing.call] rescue told << $!
    failing.call_and_forget
    failing.call_detached.await_result { nil }
    late.call rescue told << $!
    told
  end
  program("events") do
    made = concurrent_proc {}
    seen = []
    made.once_on(:event) { |*all| seen << all }
    [made.on?(:event), made.trigger(:event, 1), made.trigger(:event, 2), made.on?(:event), seen, Concurrently::Proc.on?(:event)]
  end
  program("the log of errors") do
    reader, writer = IO.pipe
    Concurrently::Proc.error_log_output = writer
    concurrently { raise "broken" }.await_result { nil }
    reader.read_nonblock(10_000).lines.first(3)
  end
  program("a log that is none") { Concurrently::Proc.error_log_output = 5 }

  # --- IOs ---

  program("await_read") do
    reader, writer = IO.pipe
    writer << "hello"
    [reader.await_read(3), reader.await_read(10), writer.close, (reader.await_read(1) rescue $!.class)]
  end
  program("await_written") { IO.pipe.last.await_written("abc") }
  program("await_readable") do
    reader, writer = IO.pipe
    [reader.await_readable(within: 0, timeout_result: :late), (reader.await_readable(within: 0) rescue $!.message),
     writer.await_writable]
  end
  program("concurrently_read and concurrently_write") do
    reader, writer = IO.pipe
    reading = reader.concurrently_read(10)
    [writer.concurrently_write("abc").await_result, reading.await_result]
  end
  program("READ_PROC and WRITE_PROC") do
    reader, writer = IO.pipe
    [IO::READ_PROC.class, IO::WRITE_PROC.call(writer, "abc"), IO::READ_PROC.call_detached(reader, 2).await_result]
  end
  program("an IO that is closed after a limit, and another of its number") do
    reader, writer = IO.pipe
    late = reader.await_readable(within: 0, timeout_result: :late, poll_first: false)
    number = reader.fileno
    [reader, writer].each(&:close)
    other, writer = IO.pipe
    writer << "x"
    [late, other.fileno == number, other.await_readable(within: 1, poll_first: false)]
  ensure
    [other, writer].each(&:close)
  end
  program("a closed IO") { IO.pipe.first.tap(&:close).await_readable }

  program("one that is concluded unwinds before what has not begun") do
    log, waiting, runs = [], nil, 0
    waits = concurrent_proc do
      number = runs += 1
      detached = concurrent_proc { log << "begins" }.call_detached
      waiting.conclude_to(:other) if number == 2
      log << "#{number} waits"
      detached.await_result
    ensure
      log << "#{number} leaves"
    end
    waits.call_and_forget
    waiting = waits.call_nonblock
    wait 0
    log
  end

  # --- the loop ---

  program("the event loop") do
    event_loop = Concurrently::EventLoop.current
    [event_loop.equal?(Concurrently::EventLoop.current), event_loop.lifetime.class, event_loop.reinitialize!.equal?(event_loop)]
  end
  program("a fork") do
    reader, writer = IO.pipe
    child = fork do
      Concurrently::EventLoop.current.reinitialize!
      concurrently { writer << "from the child" }.await_result
      exit!
    end
    Process.wait(child)
    reader.read_nonblock(100)
  end
end

ConcurrentlyPrograms.run_all if $PROGRAM_NAME == __FILE__
