# frozen_string_literal: true

require "jobs_helper"

class ConfigTest < Minitest::Test
  include AnyBackend

  def config = @config ||= Ringspun::Jobs::Config.new

  def test_has_defaults
    assert_equal [1000, 1, 25, 12, 3, 25, :group_commit, "", { "default" => 1 }],
                 [config.concurrency, config.processes, config.timeout, config.lease, config.beat, config.retries,
                  config.strategy, config.namespace, config.queues]
  end

  def test_is_set_as_a_whole
    config.update("concurrency" => 5, namespace: "exq", queues: %w[a b])
    assert_equal [5, "exq", %w[a b]], [config.concurrency, config.namespace, config.queues]
  end

  def test_says_what_it_wanted
    wrong = { concurrency: 0, timeout: -1, strategy: :fast, queues: [], limits: { a: 0 }, milliseconds: 1, redis: "redis://" }
    wrong.each do |name, value|
      error = assert_raises(Ringspun::Jobs::ConfigError) { config.update(name => value) }
      assert_match(/\A#{name} must be .*, got #{Regexp.escape(value.inspect)}\z/, error.message)
    end
  end

  def test_names_that_no_queue_to_serve_has
    quarantine = Ringspun::Jobs::Storage::QUARANTINE
    [%w[a a], ["a", :a], [""], { "" => 1 }, ["a", quarantine], { quarantine => 1 }, "a", 5].each do |value|
      assert_raises(Ringspun::Jobs::ConfigError, value.inspect) { config.queues = value }
    end
  end

  def test_names_what_there_is
    error = assert_raises(Ringspun::Jobs::ConfigError) { config.update("concurency" => 5) }
    assert_match(/no setting concurency; there are redis, namespace/, error.message)
  end

  def test_has_the_chains_of_middleware
    config.client_middleware.add(->(*) {})
    refute_empty config.client_middleware
    assert_empty config.server_middleware
  end

  def test_the_process_has_one
    Ringspun::Jobs.configure { |own| assert_same Ringspun::Jobs.config, own }
  end
end
