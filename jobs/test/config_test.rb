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
    wrong = { concurrency: 0, timeout: -1, strategy: :fast, queues: [], limits: { a: 0 }, milliseconds: 1, redis: 5,
              reloader: nil }
    wrong.each do |name, value|
      error = assert_raises(Ringspun::Jobs::ConfigError) { config.update(name => value) }
      assert_match(/\A#{name} must be .*, got #{Regexp.escape(value.inspect)}\z/, error.message)
    end
  end

  def test_names_that_no_queue_to_serve_has
    quarantine = Ringspun::Jobs::Storage::QUARANTINE
    { %w[a a] => "a", ["a", :a] => "a", [""] => "", { "" => 1 } => "", ["a", quarantine] => quarantine,
      { quarantine => 1 } => quarantine, %w[a backup::b] => "backup::b", [["a", 1], "b"] => ["a", 1], "a" => "a", 5 => 5,
      [nil] => nil, ["a\xFF"] => "a\xFF" }.each do |value, named|
      error = assert_raises(Ringspun::Jobs::ConfigError, value.inspect) { config.queues = value }
      assert_match(/\Aqueues .*#{Regexp.escape(named.inspect)}/, error.message)
    end
    error = assert_raises(Ringspun::Jobs::ConfigError) { config.limits = { quarantine => 1 } }
    assert_equal %(limits has "#{quarantine}", which is no name of a queue that programs may have), error.message
  end

  def test_what_is_added_to_lists_is_checked_when_a_worker_is_made
    [:report, nil].each do |wrong|
      config.error_handlers.replace([->(*) {}, wrong])
      error = assert_raises(Ringspun::Jobs::ConfigError) do
        Ringspun::Jobs::Worker.new(config, storage: Ringspun::Jobs::Storage::Memory.new)
      end
      assert_equal "error_handlers must have a method call, got #{wrong.inspect}", error.message
    end
  end

  def test_an_event_needs_a_block
    assert_match(/the event quiet needs a block/, assert_raises(Ringspun::Jobs::ConfigError) { config.on(:quiet) }.message)
  end

  def test_names_what_there_is
    error = assert_raises(Ringspun::Jobs::ConfigError) { config.update("concurency" => 5) }
    assert_match(/no setting concurency; there are milliseconds, .*redis, namespace/, error.message)
  end

  def test_a_storage_by_its_name_or_one_that_was_made
    storage = Ringspun::Jobs::Storage
    assert_instance_of storage::Redis, storage.for(config)
    [:memory, "memory"].each do |name|
      config.storage = name
      assert_equal :memory, config.storage
      assert_instance_of storage::Memory, storage.for(config)
    end
    config.storage = made = storage::Memory.new
    assert_same made, storage.for(config)
    config.storage = passes_on = SimpleDelegator.new(made)
    assert_same passes_on, storage.for(config)
    config.storage = nil
    assert_equal :redis, config.storage
  end

  def test_a_storage_gets_the_settings
    config.update(redis: { path: "/a" }, namespace: "n", milliseconds: true)
    asked = []
    Ringspun::Jobs::Storage.register(:other) { |given| asked << given }
    config.storage = :other
    Ringspun::Jobs::Storage.for(config)
    assert_equal [config], asked
  ensure
    Ringspun::Jobs::Storage.instance_variable_get(:@kinds).delete(:other)
  end

  def test_a_storage_with_options
    Ringspun::Jobs::Storage.register(:other) { |_config, folder:, size: 5| [folder, size] }
    config.storage = { "name" => "other", "folder" => "a" }
    assert_equal({ name: :other, folder: "a" }, config.storage)
    assert_equal ["a", 5], Ringspun::Jobs::Storage.for(config)
    { { name: :other, folder: "a", colour: 1 } => "the storage other has no option colour; it has folder, size",
      "other" => "the storage other needs the option folder",
      { name: :memory, url: "x" } => "the storage memory has no option url; it has none",
      { folder: "a" } => /there is no storage {.*folder.*}; there are redis, memory, other/ }.each do |value, message|
      assert_match(/\A#{message}/, assert_raises(Ringspun::Jobs::ConfigError) { config.storage = value }.message)
    end
  ensure
    Ringspun::Jobs::Storage.instance_variable_get(:@kinds).delete(:other)
  end

  def test_names_the_storages_that_there_are
    [:sqlite, "sqlite", 5, Object.new].each do |value|
      error = assert_raises(Ringspun::Jobs::ConfigError) { config.storage = value }
      assert_equal "there is no storage #{value.inspect}; there are redis, memory; or give a Storage", error.message
    end
  end

  def test_a_url_of_redis_comes_in_place_of_any_other_address
    config.redis = { host: "h", port: 1, db: 3, "password" => "p", sentinels: [{ "host" => "s" }], name: "main" }
    assert_equal [{ host: "s" }], config.redis[:sentinels]
    config.redis = "redis://x"
    assert_equal({ password: "p", url: "redis://x" }, config.redis)
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
