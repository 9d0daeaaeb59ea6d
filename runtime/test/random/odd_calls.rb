# frozen_string_literal: true

require "socket"
require "support/certificate"
require "tmpdir"

# Calls of public methods, on objects in any state, with any arguments. A call may raise what it likes, and may wait. It must not
# end the process. A child process makes them, and writes each one to a log before.
class OddCalls
  WAIT = 0.001                          # seconds that a call may wait
  CALLS = 400                           # of a seed
  MOST = 80                             # objects at a time
  FILE_SIZE_MAX = 1 << 20               # bytes: it shall not fill a disk
  KEYWORDS = %i[timeout limit chomp deadline within timeout_result poll_first ahead high_water encoding tls host recursive mode
                backlog on_error shield max_connections first_byte attempt_delay].freeze
  SYMBOLS = %i[readable writable value STREAM DGRAM UNIX INET RD WR USR1 created].freeze
  STRINGS = ["", "x", "x\n", "sock", "a/b", "\0", ".", "r+", "x" * 70_000, "127.0.0.1", "\xff".b, "UNIX"].freeze
  NUMBERS = [-2**64, -2**63, -2**31, -1, 0, 1, 2, 7, 4096, 65_536, 2**31 - 1, 2**31, 2**32, 2**62 - 1, 2**62, 2**63 - 1, 2**64,
             10**400, 0.0, -0.0, 1e-12, -1.5, 1e18, 1e308, Float::INFINITY, -Float::INFINITY, Float::NAN, Rational(1, 3),
             2i].freeze
  OTHERS = [nil, true, false, [], {}, [nil], [[1, 1, "x"]], Object, 0..2, $stdin, Struct.new(:to_io).new(5),
            Struct.new(:to_sockaddr).new("x")].freeze
  # Methods that end other processes, look up names outside, go on for ever, or change a whole process.
  LEFT_OUT = %i[pidfd_send_signal run connect_tcp listen_tcp datagram explore exit fork _fork daemon scheduler_close
                trap untrap address_resolve offload_limit= periodically].freeze
  AGAIN = %i[initialize initialize_copy dup clone freeze inspect to_s hash].freeze
  STATES = %i[fresh fresh fresh fresh allocated subclass copied closed frozen].freeze

  # @param log [IO] which no call can reach
  def initialize(seed, log, simulated:)
    @random = Random.new(seed)
    @log = log
    @options = simulated ? { backend: :sim, seed: } : {}
    @simulated = simulated
  end

  def call
    Process.setrlimit(:FSIZE, FILE_SIZE_MAX)
    trap(:XFSZ, "IGNORE")
    Dir.mktmpdir { |folder| Dir.chdir(folder) { Ringspun.run(**@options) { |machine| make_calls(machine) } } }
  rescue Exception => error
    note "ended by #{error.class}: #{error.message}"
  end

  private

  def make_calls(machine)
    @machine = machine
    @root = machine.running
    @objects = [machine]
    Array.new(6) { machine.socketpair }.flatten.each { |fd| @objects << fd }
    @objects.concat(machine.pipe)
    CALLS.times { make_call }
    exit!(0) unless @simulated # servers go on for ever
  end

  def make_call
    @objects.delete_at(1 + @random.rand(@objects.size - 1)) if @objects.size > MOST
    @objects << make_object if @random.rand(3).zero?
    object = receiver
    method = method_of(object) or return
    arguments, options, block = Array.new(count_for(object, method)) { argument }, keywords_for(object, method), body
    note [name_of(object), method, arguments.map { name_of(_1) }, options.transform_values { name_of(_1) }, !block.nil?].inspect
    keep somewhere { object.__send__(method, *arguments, **options, &block) }
  end

  def receiver
    case @random.rand(8)
    when 0 then Ringspun
    when 1 then @machine
    when 2 then Fiber.scheduler || @machine
    else @objects.grep_v(Integer).sample(random: @random)
    end
  end

  def method_of(object)
    return AGAIN.sample(random: @random) if @random.rand(30).zero? && object != @machine && object != Ringspun

    own = object.is_a?(Module) ? object.singleton_methods(false) : methods_of(object.class)
    (own - LEFT_OUT).sort.sample(random: @random)
  end

  def methods_of(type)
    type.ancestors.take_while { |each| each != Object }.select { |each| each.name.nil? || each.name.start_with?("Ringspun") }
      .flat_map { |each| each.public_instance_methods(false) }
  end

  # Mostly on this thread, sometimes on another one or in a fork.
  def somewhere(&call)
    case @random.rand(60)
    when 0..4 then within_thread(&call)
    when 5 then in_fork(&call)
    when 6 then Fiber.new { limited(&call) }.resume
    when 7
      GC.start
      GC.compact
      limited(&call)
    else limited(&call)
    end
  rescue Exception
    nil
  end

  def limited(&) = @machine.timeout(WAIT, &)

  def within_thread(&)
    thread = Thread.new(&).tap { |one| one.report_on_exception = false }
    thread.join(0.01) # must pass, or it has ended
    thread.kill
  end

  def in_fork
    pid = fork do
      limited { yield }
    rescue Exception
      nil
    ensure
      exit!(0)
    end
    _, status = Fiber.blocking { Process.wait2(pid) }
    Process.kill(status.termsig, Process.pid) if status.signaled?
    nil
  end

  def keep(result)
    return @objects << result if result.class.name.to_s.start_with?("Ringspun") && !result.equal?(@root)

    @objects.concat(result) if result.is_a?(Array) && result.size == 2 && result.all?(Ringspun::Stream)
  rescue Exception # a BasicObject
    nil
  end

  # --- what is called ---

  def makers
    @makers ||= {
      Ringspun::Queue => [], Ringspun::SizedQueue => [2], Ringspun::Mutex => [], Ringspun::Semaphore => [1],
      Ringspun::Condition => [], Ringspun::Barrier => [2], Ringspun::Channel => [2], Ringspun::Selector => [],
      Ringspun::Machine => [], Ringspun::Strand => [], Ringspun::Scope => [], Ringspun::Evaluation => [],
      Ringspun::Watch => [".", []], Ringspun::Signals => [["USR1"]], Ringspun::Server => [3],
      Ringspun::Datagram => [@machine, Socket::AF_INET, nil],
      Ringspun::Stream => nil
    }
  end

  def make_object
    made = @random.rand(4).zero? ? make_other : in_state(STATES.sample(random: @random), *makers.to_a.sample(random: @random))
    made.nil? ? Ringspun::Queue.new : made
  rescue Exception # an instance that is not initialized cannot even be made of some
    Ringspun::Queue.new
  end

  def in_state(state, type, arguments)
    arguments ||= [@machine.socketpair.tap { |_, other| @objects << other }.first]
    case state
    when :allocated then type.allocate
    when :subclass then Class.new(type) { define_method(:initialize) {} }.new
    when :copied then type.new(*arguments).clone
    when :frozen then type.new(*arguments).freeze
    when :closed then type.new(*arguments).tap { |one| one.close if one.respond_to?(:close) }
    else type.new(*arguments)
    end
  end

  def make_other
    case @random.rand(9)
    when 0 then @machine.spin { limited { @machine.sleep } }
    when 1 then Ringspun.concurrently { @machine.sleep(WAIT) }
    when 2 then Ringspun.concurrent_proc { |*given| given }
    when 3 then @machine.scope(deadline: WAIT) { |scope| scope }
    when 4 then @machine.open(%w[file other].sample(random: @random), "a+")
    when 5 then @machine.pipe.each { |fd| @objects << fd }.first
    when 6 then make_tls
    when 7 then Ringspun.listen_unix("sock#{@random.rand(3)}") { |stream| stream.each_chunk { |bytes| stream.write(bytes) } }
    else @machine.spin { :done }
    end
  end

  def make_tls
    client, server = @machine.socketpair.map { |fd| Ringspun::Stream.new(fd) }
    @machine.spin { limited { server.accept_tls(Certificate.server_context) } }
    @machine.timeout(1) { client.start_tls(Certificate.client_context, host: "localhost") }
    @objects << server
    client
  end

  # --- with what ---

  def argument
    case @random.rand(10)
    when 0..3 then @objects.sample(random: @random)
    when 4..5 then NUMBERS.sample(random: @random)
    when 6 then STRINGS.sample(random: @random).dup
    when 7 then SYMBOLS.sample(random: @random)
    when 8 then IO::Buffer.new([0, 1, 100].sample(random: @random))
    else OTHERS.sample(random: @random)
    end
  end

  # Mostly as many as it takes, so that the call comes to more than their count.
  def count_for(object, method)
    arity = arity_of(object, method)
    return @random.rand(4) if @random.rand(8).zero?

    arity.negative? ? -arity - 1 + @random.rand(4) : arity
  end

  def arity_of(object, method) = Kernel.instance_method(:method).bind_call(object, method).arity

  def keywords_for(object, method)
    return {} unless @random.rand(3).zero? && arity_of(object, method).negative?

    { (@random.rand(2).zero? ? :timeout : KEYWORDS.sample(random: @random)) => argument }
  end

  def body
    case @random.rand(6)
    when 0 then nil
    when 1 then ->(*, **) { raise "the block" }
    when 2 then ->(*, **) { @machine.yield }
    when 3 then ->(*given, **) { @objects.concat(given.grep_v(@root)).last }
    else proc { |given| given }
    end
  end

  def name_of(object)
    case object
    when Numeric, Symbol, nil, true, false then object.inspect
    when String then object.bytesize > 20 ? "#{object.bytesize} bytes" : object.inspect
    else object.class.name || object.class.superclass.name
    end
  rescue Exception
    "?"
  end

  def note(line) = @log.syswrite("#{line}\n")
end
