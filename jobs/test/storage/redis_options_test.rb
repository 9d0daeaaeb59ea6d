# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/listener"
require_relative "../support/redis_case"
require_relative "../../../runtime/test/support/certificate"

# servers: valkey

# Ways to a server.
class RedisOptionsTest < RedisCase
  def teardown
    call("ACL", "DELUSER", "alice")
    super
  end

  def reaches(options, **)
    one = open_storage(options, **)
    assert_nil one.push([push_of])
    assert_equal JOB, call("RPOP", "queue:default")
  end

  def config(**) = Jobs::Config.new.update(**)

  # What has no effect is not passed over in silence.
  def test_jobs_that_are_done_cannot_be_kept
    error = assert_raises(Jobs::ConfigError) { Storage.for(config(keep_done: 60, storage: :redis)) }
    assert_equal "keep_done needs a storage with tables, such as sqlite:PATH: Redis keeps no jobs that are done; leave it out",
                 error.message
    assert_kind_of Storage::Memory, Storage.for(config(keep_done: 60, storage: :memory))
  end

  def test_a_unix_socket
    reaches({ path: redis_path })
    reaches({ "url" => "unix://#{redis_path}" })
  end

  def test_host_and_port
    reaches({ url: proxy.url })
    reaches({ host: "127.0.0.1", port: proxy.port })
  end

  def test_what_the_environment_says
    given = ENV.fetch("REDIS_URL", nil)
    ENV["REDIS_URL"] = proxy.url
    reaches({})
    reaches({ path: redis_path })
    ENV["REDIS_URL"] = "redis://127.0.0.1:1"
    reaches({ url: proxy.url })
    reaches({ host: "127.0.0.1", port: proxy.port })
    assert_raises(Jobs::UnavailableError) { open_storage.push([push_of]) }
  ensure
    ENV["REDIS_URL"] = given
  end

  def test_a_numbered_database
    one = open_storage({ path: redis_path, db: 3 })
    one.push([push_of])
    call("SELECT", 3)
    assert_equal JOB, call("RPOP", "queue:default")
  end

  def test_a_user_and_a_password
    call("ACL", "SETUSER", "alice", "on", ">secret", "~*", "+@all")
    reaches({ url: "redis://alice:secret@127.0.0.1:#{proxy.port}" })
    reaches({ path: redis_path, username: "alice", password: "secret" })
    wrong = open_storage({ path: redis_path, username: "alice", password: "guess" })
    error = assert_raises(Jobs::UnavailableError) { wrong.push([push_of]) }
    assert_match(/does not let this program in: WRONGPASS/, error.message)
    refute_match(/guess/, error.message)
  end

  def test_a_user_who_may_not_do_it
    call("ACL", "SETUSER", "alice", "on", ">secret", "~*", "+@all", "-lpush")
    alice = open_storage({ path: redis_path, username: "alice", password: "secret" })
    assert_equal [Jobs::StorageError], alice.push([push_of]).map(&:class)
  end

  # Takes the TLS off what it passes on.
  class TLSProxy
    include Listener

    def initialize(path)
      @path = path
      listen
    end

    private

    def serve(client)
      secret = OpenSSL::SSL::SSLSocket.new(client, Certificate.server_context).accept
      plain = UNIXSocket.new(@path)
      answers = Thread.new { pump(plain, secret) }
      pump(secret, plain)
      plain.shutdown
      answers.join
    rescue OpenSSL::SSL::SSLError # a client that does not trust us
      nil
    ensure
      [client, plain].compact.each(&:close)
    end

    def pump(from, to)
      loop { to.write(from.readpartial(10_000)) }
    rescue EOFError, SystemCallError, OpenSSL::SSL::SSLError
      nil
    end
  end

  def test_tls
    tls = TLSProxy.new(redis_path)
    @opened.unshift(tls) # to be closed after its clients
    url = "rediss://localhost:#{tls.port}"
    reaches({ url: url, ssl_params: { cert_store: Certificate.store } })
    Ringspun.run { reaches({ url: url, ssl_params: { cert_store: Certificate.store } }) }
    stranger = open_storage({ url: url })
    error = assert_raises(Jobs::UnavailableError) { stranger.push([push_of]) }
    assert_match(/certificate verify failed/, error.message)
  end

  def test_what_the_configuration_says
    one = opened(Storage.for(config(redis: { path: redis_path }, namespace: "ns", milliseconds: true)))
    assert_kind_of Storage::Redis, one
    one.push([push_of(at: 5)])
    one.due(1)
    assert_kind_of Integer, JSON.parse(call("RPOP", "ns:queue:default"))["enqueued_at"]
  end

  def test_what_nobody_knows
    error = assert_raises(Jobs::ConfigError) { Storage::Redis.new({ hots: "localhost" }) }
    assert_match(/RedisClient refuses the setting redis: unknown keyword: :hots/, error.message)
    [{ url: "http://localhost" }, { url: "not an url" }, { db: "first" }, { host: "a", port: "b" }].each do |options|
      assert_raises(Jobs::ConfigError, options.inspect) { Storage::Redis.new(options) }
    end
  end

  # As those that trace what is sent.
  module Tracing
    class << self
      attr_accessor :seen
    end

    def call_pipelined(commands, config)
      Tracing.seen&.concat(commands.map(&:first))
      super
    end
  end

  def test_middlewares_of_the_client
    Tracing.seen = []
    reaches({ path: redis_path, middlewares: [Tracing] })
    assert_equal %w[SADD LPUSH], Tracing.seen.last(2)
  end

  # Another driver would wait outside of the machine, and what is not ours would be sent twice.
  def test_some_options_are_ours
    one = open_storage({ url: proxy.url, driver: :hiredis, reconnect_attempts: 5, protocol: 2 })
    assert_nil one.push([push_of(at: 5)])
    assert_equal [Storage::Stored.new(JOB, JOB, 5.0)], one.scan(:schedule, 0, 1)
    proxy.swallow
    assert_raises(Jobs::UnknownOutcomeError) { one.push([push_of]) }
    assert_equal 1, call("LLEN", "queue:default")
  end
end
