# frozen_string_literal: true

require "jobs_helper"

class RedisConnectionTest < Minitest::Test
  include AnyBackend

  Redis = Ringspun::Jobs::Storage::Redis
  Jobs = Ringspun::Jobs

  # Answers what it is given, one thing for each round trip; an error is raised.
  class Client
    Config = Struct.new(:answers) do
      def new_client = Client.new(self)
      def sentinel? = false
    end

    attr_reader :config

    def initialize(config) = @config = config
    def close = nil

    def exchange(*)
      answer = @config.answers.shift
      raise answer if answer.is_a?(RedisClient::CannotConnectError)

      yield
      answer.is_a?(Exception) ? raise(answer) : answer
    end
  end

  def exchange(*answers)
    commands = [%w[SADD queues a], Redis.const_get(:Script)[:push].command("")]
    Redis.const_get(:Connection).new(Client::Config.new(answers)).exchange(commands)
  end

  def no_script = RedisClient::NoScriptError.new("NOSCRIPT No matching script.")

  def test_a_server_that_is_not_ready
    ["LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down"].each do |answer|
      assert_kind_of Jobs::UnavailableError, exchange([1, RedisClient::CommandError.parse(answer)]).last
    end
    assert_instance_of Jobs::StorageError, exchange([1, RedisClient::CommandError.parse("ERR loading")]).last
  end

  # The others have been done, and must not be called unsent because of it.
  def test_a_script_that_is_not_known_and_then_cannot_be_sent
    replies = exchange([1, no_script], RedisClient::CannotConnectError.new("refused"))
    assert_equal [1, Jobs::UnavailableError], [replies[0], replies[1].class]
  end

  def test_a_script_that_is_not_known_and_then_has_no_answer
    replies = exchange([1, no_script], RedisClient::ReadTimeoutError.new("late"))
    assert_equal [1, Jobs::UnknownOutcomeError], [replies[0], replies[1].class]
  end

  def test_a_script_that_is_not_known_is_sent_as_a_whole
    assert_equal [1, [""]], exchange([1, no_script], [[""]])
  end
end
