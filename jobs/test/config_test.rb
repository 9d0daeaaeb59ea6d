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

  def test_what_is_set_at_once_is_a_hash
    error = assert_raises(Ringspun::Jobs::ConfigError) { config.update(nil) }
    assert_equal "settings must be a Hash of names and values, got nil", error.message
    assert_match(/configure needs a block/, assert_raises(Ringspun::Jobs::ConfigError) { Ringspun::Jobs.configure }.message)
  end

  def test_says_what_it_wanted
    wrong = { concurrency: 0, timeout: -1, strategy: :fast, queues: [], limits: { a: 0 }, milliseconds: 1, redis: 5,
              reloader: nil, keep_done: -1 }
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

  def test_what_a_worker_needs
    { { storage: nil } => "a worker needs a storage, such as Ringspun::Jobs.storage, got nil",
      { storage: Ringspun::Jobs::Storage::Memory.new, logger: 5 } => "logger must be a Logger, got 5" }.each do |given, message|
      error = assert_raises(Ringspun::Jobs::ConfigError) { Ringspun::Jobs::Worker.new(config, **given) }
      assert_equal message, error.message
    end
  end

  def test_an_event_needs_a_block
    assert_match(/the event quiet needs a block/, assert_raises(Ringspun::Jobs::ConfigError) { config.on(:quiet) }.message)
  end

  def test_names_what_there_is
    error = assert_raises(Ringspun::Jobs::ConfigError) { config.update("concurency" => 5) }
    assert_match(/no setting concurency, did you mean concurrency\?\z/, error.message)
  end

  def test_a_storage_by_its_name_or_one_that_was_made
    storage = Ringspun::Jobs::Storage
    assert_nil config.storage
    config.storage = :redis
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
    2.times { config.storage = nil }
    assert_equal [nil, false], [config.storage, config.given?(:storage)]
  end

  def test_a_file_of_sqlite_by_its_path
    Dir.mktmpdir do |folder|
      config.storage = "sqlite:#{folder}/a:b.sqlite3"
      assert_equal({ name: :sqlite, path: "#{folder}/a:b.sqlite3" }, config.storage)
      storage = Ringspun::Jobs::Storage.for(config)
      assert_equal ["#{File.realpath(folder)}/a:b.sqlite3", true], [storage.path, storage.shared?]
    end
    { "sqlite" => "the storage sqlite needs the option path",
      "sqlite:" => "the storage sqlite needs a path, as in sqlite:jobs.sqlite3",
      "sqlite:/x/:memory:" => "the storage sqlite needs the path of a file, got /x/:memory:; for jobs in memory write memory",
      "sqlite:/x/file:a?mode=ro" => "the storage sqlite needs the path of a file, got /x/file:a?mode=ro; leave out file:",
      "sqlite:/tmp/#{"n" * 241}" => "the name of the file /tmp/#{"n" * 241} is longer than 240 bytes; name another one",
      "sqlite:/tmp/#{"n/" * 250}x" => "/tmp/#{"n/" * 250}x is longer than 500 bytes; name another file",
      "sqlite:/a\0b" => '"/a\u0000b" is no path for a storage: it has a NUL',
      "sqlite:~nobody-is-called-so/a" => '"~nobody-is-called-so/a" is no path for a storage: ' \
                                         "user nobody-is-called-so doesn't exist",
      "sqlite:/a\xff" => 'there is no storage "sqlite:/a\xFF"; there are redis, memory, sqlite:PATH; or give a Storage',
      false => "there is no storage false; there are redis, memory, sqlite:PATH; or give a Storage",
      "sqlite:/nowhere/jobs.sqlite3" => "there is no folder /nowhere for /nowhere/jobs.sqlite3; make it first",
      { name: :sqlite, path: "/tmp/a", durable: "no" } => 'durable must be full or normal, got "no"',
      "memory:/tmp/a" => "the storage memory has no option path; it has none" }.each do |value, message|
      error = assert_raises(Ringspun::Jobs::ConfigError) do
        config.storage = value
        Ringspun::Jobs::Storage.for(config)
      end
      assert_equal message, error.message
    end
  end

  def test_a_relative_path_that_is_no_string
    Dir.mktmpdir do |folder|
      config.storage = { name: :sqlite, path: Pathname("jobs.sqlite3") }
      assert_equal({ name: :sqlite, path: "#{folder}/jobs.sqlite3" },
                   Ringspun::Jobs::Storage.located(config.storage, folder))
    end
  end

  def test_a_storage_gets_the_settings
    config.update(redis: { path: "/a" }, namespace: "n", milliseconds: true)
    asked = []
    Ringspun::Jobs::Storage.register(:other) { |given| asked << given }
    config.storage = :other
    Ringspun::Jobs::Storage.for(config)
    assert_equal [config], asked
  ensure
    %i[@kinds @forms].each { |table| Ringspun::Jobs::Storage.instance_variable_get(table).delete(:other) }
  end

  def test_a_storage_with_options
    Ringspun::Jobs::Storage.register(:other) { |_config, folder:, size: 5| [folder, size] }
    config.storage = { "name" => "other", "folder" => "a" }
    assert_equal({ name: :other, folder: "a" }, config.storage)
    assert_equal ["a", 5], Ringspun::Jobs::Storage.for(config)
    { { name: :other, folder: "a", colour: 1 } => "the storage other has no option colour; it has folder, size",
      "other" => "the storage other needs the option folder",
      { name: :memory, url: "x" } => "the storage memory has no option url; it has none",
      { folder: "a" } => /there is no storage {.*folder.*}; there are .*memory, sqlite:PATH, other/ }.each do |value, message|
      assert_match(/\A#{message}/, assert_raises(Ringspun::Jobs::ConfigError) { config.storage = value }.message)
    end
  ensure
    %i[@kinds @forms].each { |table| Ringspun::Jobs::Storage.instance_variable_get(table).delete(:other) }
  end

  def test_names_the_storages_that_there_are
    [:mysql, "mysql", 5, Object.new].each do |value|
      error = assert_raises(Ringspun::Jobs::ConfigError) { config.storage = value }
      assert_equal "there is no storage #{value.inspect}; there are redis, memory, sqlite:PATH; or give a Storage", error.message
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
