# frozen_string_literal: true

require "json"
require "ringspun/jobs"
require "support/servers"
require "support/aof_redis"
require "support/command"
require "tmpdir"
require_relative "../../../bin/support/process_times"

# A worker is killed with many jobs in flight, and another takes them over: how long does it take until all are done? With the
# settings as they are unless told otherwise.
class MassDeath
  PROGRAM = <<~RUBY
    require "ringspun/jobs"

    class Report
      include Ringspun::Jobs::Job

      def perform(seconds) = sleep(seconds)
    end

    class Endless
      include Ringspun::Jobs::Job

      def perform = (nil while true)
    end

    class Poison
      include Ringspun::Jobs::Job

      def perform = Process.kill(:KILL, Process.pid)
    end
  RUBY

  # waited: seconds after the lease for which the worker and this process waited for a processor. On a computer with much other
  # work nobody is late. What the job that never ends has waited for in the quarantine's process is no excuse.
  Result = Struct.new(:seconds, :by_lease, :waited, :done, :dead, :left) do
    def by_work = seconds - by_lease
    def least = by_work - waited
  end

  # @param count [Integer] jobs
  # @param seconds [Numeric] that each of them takes
  # @param endless [Integer] jobs beside them that never end
  # @param poison [Integer] jobs beside them that end their process
  # @param concurrency [Integer] how many jobs the worker runs at once that takes them over
  def initialize(count:, seconds:, endless: 0, poison: 0, concurrency: 1000)
    @count = count
    @seconds = seconds
    @endless = endless
    @poison = poison
    @concurrency = concurrency
    @folder = Dir.mktmpdir("ringspun-mass-death-")
    File.write(File.join(@folder, "app.rb"), PROGRAM)
    @server = AofRedis.new
    @storage = Ringspun::Jobs::Storage::Redis.new({ path: @server.path })
  end

  # What is in flight at a node that is gone, as after a SIGKILL of a worker that had all of them, the others among them too.
  #
  # @return [Result]
  def run
    killed, node = start
    push("Report", @count, @seconds)
    wait { @storage.stats[:in_flight] == @count }
    killed.signal(:KILL)
    began = now
    add_to_the_dead(node)
    heir, = start("-c", @concurrency.to_s)
    suspected = nil
    wait { (suspected = @storage.list(Ringspun::Jobs::Storage::QUARANTINE, 0, 1).any?) || @storage.stats[:in_flight] < total }
    by_lease = now - began - (suspected ? 0 : @seconds) # else one is done
    before = waited(heir)
    wait { @storage.stats.then { |stats| stats[:processed] == @count + @poison && stats[:dead] == @poison } }
    stats = @storage.stats
    Result.new(now - began, by_lease, waited(heir) - before, stats[:processed] - stats[:dead], stats[:dead],
               stats.values_at(:enqueued, :in_flight).sum)
  ensure
    [killed, heir].compact.each(&:close)
  end

  def close
    @storage.close
    @server.close
    FileUtils.rm_rf(@folder)
  end

  private

  def waited(worker) = [Process.pid, worker.pid].sum { |pid| ProcessTimes.new(pid).sample.waited }
  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def total = @count + @endless + @poison

  # Its own: what they do they would have done to the worker that is killed.
  def add_to_the_dead(node)
    push("Endless", @endless)
    push("Poison", @poison)
    @storage.fetch(node, %w[default], total)
  end

  # Returns the worker, and the name of its node, which it may not have announced yet.
  def start(*words)
    log = File.join(@folder, "log#{@logs = @logs.to_i + 1}")
    worker = Command.new("-r", "app.rb", "--redis", "unix://#{@server.path}", "--log", log, *words, chdir: @folder)
    node = nil
    wait { File.exist?(log) && node = File.read(log)[/ node=(\S+) .*the worker is ready/, 1] }
    [worker, node]
  end

  def push(job_class, count, *arguments)
    pushes = Array.new(count) do |number|
      jid = "#{job_class}#{number}"
      entry = JSON.generate("class" => job_class, "args" => arguments, "queue" => "default", "jid" => jid, "retry" => true)
      Ringspun::Jobs::Storage::Push.new(queue: "default", entry:, jid:)
    end
    @storage.push(pushes) if pushes.any?
  end

  def wait
    give_up = now + 600
    until yield
      raise "still not so: #{@storage.stats}" if now > give_up

      sleep 0.05
    end
  end
end

if $PROGRAM_NAME == __FILE__
  LIMIT_SECONDS = 60
  DELAY_SECONDS = 5 # that one which never ends may delay the others
  count = Integer(ENV.fetch("JOBS", "1000"))
  plain = nil
  [[0, 0], [1, 0], [1, 1]].each do |endless, poison|
    run = MassDeath.new(count:, seconds: 3, endless:, poison:)
    result = run.run
    puts format("SIGKILL with %d jobs of 3 s in flight, %d that never end and %d that end their process: " \
                "%.1f s until all others are done, %.1f of them until the lease was over, %.1f waited for a processor after that",
                count, endless, poison, result.seconds, result.by_lease, result.waited)
    abort "FAILED: that took longer than #{LIMIT_SECONDS} s" if result.seconds - result.waited > LIMIT_SECONDS
    abort "FAILED: #{result}" if [result.done, result.dead, result.left] != [count, poison, endless]
    plain ||= result.by_work
    delay = result.least - plain
    abort "FAILED: one that never ends delays the others by #{delay.round(1)} s" if poison.zero? && delay > DELAY_SECONDS
  ensure
    run&.close
  end
end
