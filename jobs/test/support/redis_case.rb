# frozen_string_literal: true

require_relative "../../../runtime/test/support/patience"
require_relative "../../../runtime/test/support/servers"
require_relative "proxy"

# A storage on the tests' Redis, which is empty at the start of each, with a look past the storage.
class RedisCase < Minitest::Test
  include Servers::Redis
  include Children

  Storage = Ringspun::Jobs::Storage
  Jobs = Ringspun::Jobs

  NODE = "host:1:aa"

  # Settings of workers in processes of their own. No lease runs out because a process has no processor for a while, and no test
  # waits until one is over: see #lapse.
  LEASE = "lease: 600\nbeat: 0.25\n"
  JOB = '{"class":"Work","args":[],"jid":"a","queue":"default"}'

  def setup
    super
    @opened = []
    # The kernel may close what a process of an earlier test had open some time after its end, and its last wait takes our job.
    call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    call("FLUSHALL")
  end

  def teardown
    @opened.reverse_each(&:close)
    @redis&.close
    super
  end

  def storage = @storage ||= open_storage({ path: redis_path })

  # Closed with the test.
  def open_storage(...) = opened(Storage::Redis.new(...))

  def opened(one)
    @opened << one
    one
  end

  # What the server answers.
  def call(*command)
    @redis ||= RedisClient.new(path: redis_path, driver: :ruby, timeout: 60)
    @redis.call(*command)
  end

  def proxy = @proxy ||= opened(Proxy.new { UNIXSocket.new(redis_path) })

  # Ends the lease of a process that is dead, stopped or cut off. Returns when others have taken over what it had in flight:
  # before, a heartbeat of its may still be under way.
  def lapse(pid, prefix: "")
    node = call("SMEMBERS", "#{prefix}ringspun:nodes").find { |name| name.include?(":#{pid}:") }
    patience = Patience.new(60)
    until taken_over?(node, prefix)
      flunk "nobody has taken over what #{node} had in flight" if patience.over?

      call("DEL", "#{prefix}ringspun:alive:#{node}")
      call("HDEL", "#{prefix}ringspun:leases", node)
      sleep 0.01
    end
  end

  def taken_over?(node, prefix)
    queues = call("SMEMBERS", "#{prefix}ringspun:lists:#{node}")
    queues.all? { |queue| call("LLEN", "#{prefix}queue:backup::#{node}::#{queue}").zero? }
  end

  # By way of the proxy.
  def far = @far ||= open_storage({ url: proxy.url })

  def push_of(entry = JOB, queue: "default", **) = Storage::Push.new(queue: queue, entry: entry, jid: "a", **)
end
