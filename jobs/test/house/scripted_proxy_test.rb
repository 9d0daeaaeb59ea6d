# frozen_string_literal: true

require "jobs_helper"
require "redis-client"
require "support/scripted_proxy"
require "support/servers"

# That a script does to each exchange what it says, and nothing to others.
class ScriptedProxyTest < Minitest::Test
  include AnyBackend
  include Servers::Redis

  def setup
    super
    @folder = Dir.mktmpdir
    @held = Thread::Queue.new
    @direct = RedisClient.new(path: redis_path, timeout: 60)
    @direct.call("FLUSHALL")
    @proxy = ScriptedProxy.new(File.join(@folder, "sock"), held: -> { @held << true }) { UNIXSocket.new(redis_path) }
    @through = client
    @through.call("PING")
  end

  def teardown
    [@through, @direct].each(&:close)
    @proxy.close
    FileUtils.rm_rf(@folder)
    super
  end

  def client = RedisClient.new(path: @proxy.path, driver: :ruby, timeout: 20, reconnect_attempts: 0)

  # What the next request of a push finds: whether it is answered, and stored.
  def push(*verdict)
    @proxy.script(verdict)
    answered = begin
      @through.call("RPUSH", "list", "x" * 100)
      true
    rescue RedisClient::ConnectionError
      @through.close
      @proxy.drain
      false
    end
    [answered, @direct.call("DEL", "list") == 1]
  end

  def test_each_verdict
    assert_equal [true, true], push(:pass)
    assert_equal [false, false], push(:cut)
    assert_equal [false, true], connected { push(:lose) }
    assert_equal [false, false], connected { push(:tear, 0.9) }
    assert_equal [false, true], connected { push(:tear_answer, 0.9) }
    assert_equal [false, false], push(:refuse)
    assert_equal [true, true], push(:pass)
  end

  # The greeting of a new connection is an exchange as well.
  def connected
    @through.call("PING")
    yield
  end

  def test_what_is_held_goes_on_when_the_gate_opens
    { hold: 0, hold_answer: 1 }.each do |verdict, stored|
      @proxy.script([verdict])
      pushing = Thread.new { @through.call("RPUSH", "list", "x") }
      @held.pop
      assert_equal [1, stored], [@proxy.held, @direct.call("EXISTS", "list")]
      @proxy.release
      assert_equal [1, 0], [pushing.value, @proxy.held]
      @direct.call("DEL", "list")
    end
  end

  def test_nothing_is_held_any_more
    @proxy.hold_no_more
    assert_equal [true, true], push(:hold)
    @proxy.reset
    @proxy.script([:hold])
    pushing = Thread.new { @through.call("PING") }
    @held.pop
    @proxy.hold_no_more
    assert_equal "PONG", pushing.value
  end

  def test_what_is_late_arrives_after_its_sender_is_gone
    impatient = client
    impatient.call("PING")
    impatient.timeout = 1 # only now, for nothing may be late before
    @proxy.script([:late])
    assert_raises(RedisClient::ReadTimeoutError) { impatient.call("RPUSH", "list", "x") }
    impatient.close
    @through.close
    @proxy.drain
    assert_equal 1, @direct.call("EXISTS", "list")
  end

  def test_a_block_is_called_before_the_server_has_the_request
    seen = nil
    @proxy.script([:call, -> { seen = @direct.call("EXISTS", "list") }])
    @through.call("RPUSH", "list", "x")
    assert_equal 0, seen
  end

  def test_it_refuses_and_cuts
    @proxy.cut
    assert_raises(RedisClient::ConnectionError) { @through.call("PING") }
    @proxy.refusing = true
    assert_raises(RedisClient::ConnectionError) { @through.call("PING") }
    @proxy.refusing = false
    assert_equal "PONG", @through.call("PING")
  end
end
