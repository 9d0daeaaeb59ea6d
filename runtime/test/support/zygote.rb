# frozen_string_literal: true

require "rbconfig"
require "socket"
require "tempfile"

# A Ruby that has booted and has loaded ringspun, from which children are forked: a fork takes a fifteenth of the processor's
# time that a boot takes. A child is a main program like that of `ruby -e`, see zygote_process.rb. It is no child of this
# process: who it is and how it has ended comes through a socket.
class Zygote
  # The variables that a Ruby reads before its main program.
  AT_BOOT = /\A(RUBY|GEM_|BUNDLE|LD_|LC_|LANG|MALLOC_|GLIBC_|[A-Z]+SAN_OPTIONS)/

  FOLDERS = %w[../../lib ..].map { |folder| File.expand_path(folder, __dir__) }.freeze
  OPTIONS = ["-w", *FOLDERS.map { |folder| "-I#{folder}" }].freeze

  # The number that the socket has there: the numbers from 3 on are those that a booted Ruby takes.
  DESCRIPTOR = 100

  # How a child has ended, by the names of Process::Status. cpu: seconds of it and its children.
  Ended = Data.define(:pid, :exitstatus, :termsig, :text, :cpu) do
    def exited? = !exitstatus.nil?
    def signaled? = !termsig.nil?
    def success? = exitstatus&.zero?
    def to_s = text
    def inspect = "#<#{self.class}: #{text}>"
  end

  # A child of a zygote.
  class Forked
    attr_reader :pid

    def initialize(connection)
      @connection = connection
      @pid = Marshal.load(connection)
    end

    # Returns nil when it has not ended after so many seconds.
    def wait(timeout)
      return @ended if @ended || !@connection.wait_readable(timeout)

      @ended = Ended.new(**Marshal.load(@connection))
      Zygote.count_cpu(@ended.cpu)
      @connection.close
      @ended
    end
  end

  # A child of this process.
  class Fresh
    attr_reader :pid

    def initialize(pid)
      @pid = pid
      @waiter = Process.detach(pid)
    end

    def wait(timeout) = @waiter.join(timeout)&.value
  end

  class << self
    # How many Rubies this process has booted, and how many children zygotes have forked for it.
    attr_reader :fresh, :forked

    # Seconds of the children that zygotes have forked for this process and that have ended. They are no children of it.
    attr_reader :cpu

    # Starts a Ruby that runs the code as its main program, with nothing to read. It is forked unless it is to be fresh, or its
    # environment takes a boot.
    #
    # @param from [Zygote, nil] from which it is forked
    # @return [Forked, Fresh] each has `pid` and `wait(timeout)`
    def start(code, arguments = [], out:, err:, env: {}, pgroup: false, fresh: false, from: nil)
      # Without Bundler, which would be most of the time.
      env = { **ENV, "RUBYOPT" => nil, **env }.compact
      zygote = [*from, *ALL].find { |each| each.fits?(env) } unless fresh
      return zygote.fork(code, arguments, env, out:, err:, pgroup:) if zygote

      held_up = ["-r#{__dir__}/held_up"] if env["RINGSPUN_HELD_UP_CHILD"]
      Fresh.new(boot(env, *held_up, "-e", code, *arguments, out:, err:, **(pgroup ? { pgroup: true } : {})))
    end

    # Boots a Ruby with that environment and no other, and answers its pid.
    def boot(env, *arguments, **)
      @fresh += 1
      spawn(env, RbConfig.ruby, *OPTIONS, *arguments, unsetenv_others: true, in: File::NULL, **)
    end

    def count_fork = @forked += 1
    def count_cpu(seconds) = @cpu += seconds
  end

  @fresh = @forked = 0
  @cpu = 0.0

  # The sockets are there from the beginning, so that no test seems to have left them: a zygote is to be made where a class is
  # defined. Its process begins with its first child.
  #
  # @param prelude [String] code that it runs first
  # @yieldreturn [Hash{String => String, nil}] environment that differs from that of this process
  def initialize(prelude = "", &env)
    @prelude = prelude
    @own_env = env
    @ours, @theirs = UNIXSocket.pair
    @starting = Thread::Mutex.new
  end

  def fits?(env) = at_boot(env) == at_boot(@env || env_now)

  def fork(code, arguments, env, out:, err:, pgroup:)
    @starting.synchronize { start unless @env }
    Zygote.count_fork
    connection, far = UNIXSocket.pair
    @ours.send_io(far)
    far.close
    [out, err].each { |io| connection.send_io(io) }
    changes = (@env.keys | env.keys).to_h { |name| [name, env[name]] }.reject { |name, value| @env[name] == value }
    connection.write(Marshal.dump({ code:, arguments:, env: changes, pgroup:, folder: Dir.pwd }))
    Forked.new(connection)
  end

  private

  def at_boot(env) = env.select { |name, _| name.match?(AT_BOOT) }

  def env_now = { **ENV, "RUBYOPT" => nil, **@own_env.call }.compact

  # It ends when nobody has the other end of its socket any more. What it says while it loads would be its children's to say.
  def start
    env = env_now
    own = { "RINGSPUN_ZYGOTE" => DESCRIPTOR.to_s, "RINGSPUN_ZYGOTE_PRELUDE" => @prelude }
    said = Tempfile.create do |file|
      pid = Zygote.boot({ **env, **own }, "-r#{__dir__}/zygote_process.rb", "-e", "# the program of a child",
                        DESCRIPTOR => @theirs, %i[out err] => file)
      Process.wait2(pid).last.success? ? File.read(file.path) : "#{$?}: #{File.read(file.path)}"
    end
    raise "a zygote has said: #{said}" unless said.empty?

    @theirs.close
    pid = @ours.recv(4).unpack1("N")
    Supervised.keep(pid) if defined?(Supervised)
    @env = env
  end

  # One without gems, one with those of the bundle, and one with the folders of those that this process has.
  ALL = [new { {} }, new { { "RUBYOPT" => "-rbundler/setup" } }, new { { "RUBYLIB" => $LOAD_PATH.join(":") } }].freeze
  private_constant :ALL
end
