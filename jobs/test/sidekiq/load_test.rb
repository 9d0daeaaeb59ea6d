# frozen_string_literal: true

require "support/both_sides"

# Who gets Sidekiq's names: a program has the gem, or what stands in for it.
class SidekiqLoadTest < BothSides
  def program(code)
    @programs.push(Program.ruby(code, env: { "REDIS_URL" => url })).last
  end

  def test_the_gem_is_loaded_already
    child = program("require 'sidekiq'\nrequire 'ringspun/jobs/sidekiq'")
    refute_predicate child.wait, :success?
    assert_match(/the gem sidekiq is loaded already.* Remove sidekiq from the Gemfile.*ConfigError/, child.log)
  end

  # What programs require gets what stands in, although the gem is in the bundle.
  def test_what_programs_require
    child = program(<<~RUBY)
      require "ringspun/jobs/sidekiq"
      %w[sidekiq sidekiq/job sidekiq/worker sidekiq/client sidekiq/middleware/chain sidekiq/version sidekiq/logger].each { |name| require name }
      puts Sidekiq.equal?(Ringspun::Jobs::Sidekiq), $LOADED_FEATURES.grep(%r{gems/sidekiq-}).size, Sidekiq::Job
    RUBY
    assert_predicate child.wait, :success?, child.log
    assert_equal %w[true 0 Sidekiq::Job], child.log.lines(chomp: true)
  end

  # The files of the gem would open classes of ours, and fail somewhere in their midst.
  def test_what_programs_require_that_is_missing
    child = program(<<~RUBY)
      require "ringspun/jobs/sidekiq"
      %w[web tui cli deploy transaction_aware_client].each do |name|
        require "sidekiq/\#{name}"
        puts name
      rescue Ringspun::Jobs::ConfigError => error
        puts "\#{name}: \#{error.message}"
      end
      puts $LOADED_FEATURES.grep(%r{gems/sidekiq-}).size
    RUBY
    assert_predicate child.wait, :success?, child.log
    expected = %w[web tui cli deploy transaction_aware_client].map do |name|
      %r{\A#{name}: sidekiq/#{name} is a part of the gem sidekiq, for which ringspun/jobs/sidekiq stands in: \w}
    end
    expected.push(/\A0\z/).zip(child.log.lines(chomp: true)).each { |pattern, line| assert_match pattern, line }
  end

  # Whatever of Active Job is there first. Each order has a process of its own.
  ORDERS = [
    %w[sidekiq_is_required active_job_is_required the_adapter_is_asked the_base_is_loaded],
    %w[active_job_is_required sidekiq_is_required the_base_is_loaded],
    %w[active_job_is_required the_base_is_loaded sidekiq_is_required],
    %w[active_job_is_required the_base_is_loaded a_class_is_made sidekiq_is_required],
    %w[active_job_is_required the_adapter_is_refused sidekiq_is_required],
    %w[sidekiq_is_required active_job_is_required the_adapter_is_asked],
    %w[active_job_is_required sidekiq_is_required the_adapter_is_asked], %w[sidekiq_is_required the_adapter_is_required],
    %w[the_adapter_is_required_from_the_stand_in]
  ].freeze

  def test_active_job_is_loaded_before_or_after
    child = program(<<~RUBY)
      # What Active Job loads of others.
      %w[active_support active_support/rails active_support/core_ext global_id].each { |name| require name }
      stand_in = "ringspun/jobs/sidekiq/stand_in/active_job/queue_adapters/sidekiq_adapter"
      steps = {
        "sidekiq_is_required" => -> { require "ringspun/jobs/sidekiq" },
        "active_job_is_required" => -> { require "active_job" },
        "the_base_is_loaded" => -> { ActiveJob.const_get(:Base) },
        "a_class_is_made" => -> { Class.new(ActiveJob::Base) { self.queue_adapter = :async } },
        "the_adapter_is_asked" => -> { ActiveJob::QueueAdapters.lookup(:sidekiq) },
        # As an app without the gem has it.
        "the_adapter_is_refused" => lambda do
          ActiveJob::QueueAdapters.autoload(:SidekiqAdapter, File.join(__dir__, "refused.rb"))
          File.write(File.join(__dir__, "refused.rb"), "raise LoadError, 'sidekiq is not part of the bundle'")
          ActiveJob::QueueAdapters.const_get(:SidekiqAdapter)
        rescue LoadError
          nil
        end,
        "the_adapter_is_required" => -> { require "active_job/queue_adapters/sidekiq_adapter" },
        "the_adapter_is_required_from_the_stand_in" => -> { require stand_in }
      }
      #{ORDERS.inspect}.each_with_index do |order, index|
        Process.wait(fork do
          order.each { |name| steps.fetch(name).call }
          job = Class.new(ActiveJob::Base) do
            def self.name = "Own"
            self.queue_adapter = :sidekiq
            sidekiq_options retry: index
          end
          job.logger = nil
          job.perform_later
          puts [job.queue_adapter_name, $LOADED_FEATURES.grep(%r{gems/sidekiq-}).size].join(" ")
        end)
      end
    RUBY
    assert_predicate child.wait, :success?, child.log
    lines = child.log.lines(chomp: true)
    assert_equal ["sidekiq 0"] * ORDERS.size, lines.grep_v(/warning|^\tfrom /), child.log
    assert_empty lines.grep(%r{circular|jobs/lib})
    stored = redis.call("LRANGE", "queue:default", 0, -1).map { |entry| JSON.parse(entry)["retry"] }
    assert_equal (0...ORDERS.size).to_a, stored.reverse
  end

  def test_an_active_job_cannot_be_one
    made = both(<<~RUBY)
      module ActiveJob; class Base; end; end
      class Mail < ActiveJob::Base; end
      begin
        Mail.include(Sidekiq::Job)
      rescue => error
        error.class.name
      end
    RUBY
    assert_equal "ArgumentError", made.answer
  end

  def test_what_programs_ask_of_it
    both(<<~RUBY)
      require "sidekiq/capsule"
      config = Sidekiq.default_configuration
      before = [Gem::Version.new(Sidekiq::VERSION) >= Gem::Version.new("8"), Sidekiq::MAJOR, Sidekiq.gem_version >= Gem::Version.new("8"), !!Sidekiq.server?, !!Sidekiq.pro?,
                !!Sidekiq.ent?, Sidekiq.load_json(Sidekiq.dump_json("a" => 1)), Sidekiq::Worker == Sidekiq::Job,
                Sidekiq::Shutdown.superclass.name, Sidekiq.default_job_options]
      config[:mine] = 7
      config.merge!(other: 8)
      config[:timeout] = 9
      config.concurrency = "12"
      config.queues = %w[critical,3 default low,1]
      config[:max_retries] = 4
      config.redis = { url: ENV.fetch("REDIS_URL"), network_timeout: 3, size: 4 }
      config.average_scheduled_poll_interval = 10
      yielded = []
      Sidekiq.configure_client { |each| yielded << each.equal?(config) }
      Sidekiq.configure_server { |each| yielded << :server }
      [before, config[:mine], config.fetch(:other), config.fetch(:nothing, 1), config.key?(:nothing), config[:timeout],
       config.concurrency, config.queues.uniq, config[:max_retries], config.redis { |redis| redis.ping }, yielded,
       config[:average_scheduled_poll_interval], config.redis_info.key?("redis_version")]
    RUBY
  end

  # But for the concurrency.
  def test_the_options_that_hold_unless_others_are_set
    both(<<~RUBY)
      defaults = Sidekiq::Config::DEFAULTS
      [defaults.keys, defaults.values_at(:require, :timeout, :max_iteration_runtime, :dead_max_jobs, :dead_timeout_in_seconds,
                                         :on_complex_arguments, :average_scheduled_poll_interval, :labels, :environment),
       defaults[:lifecycle_events], defaults[:reloader].call { :value }, defaults[:backtrace_cleaner].call(%w[a])]
    RUBY
  end

  def test_chains
    both(<<~RUBY)
      %w[A B C D].each { |name| Object.const_set(name, Class.new { def call(*) = yield }) }
      chain = Sidekiq.default_configuration.server_middleware
      chain.add(A)
      chain.prepend(B)
      chain.insert_before(A, C)
      chain.insert_after(C, D)
      orders = [chain.map { |each| each.klass.name }]
      chain.add(B)
      chain.insert_before(D, A)
      orders << chain.map { |each| each.klass.name }
      chain.remove(D)
      chain.remove(String)
      chain.insert_before(String, D)
      orders << chain.map { |each| each.klass.name } << chain.exists?(D) << chain.include?(String) << chain.empty?
      chain.clear
      orders << chain.empty? << chain.invoke(1) { :value }
    RUBY
  end

  # The forms of lines are ours.
  def test_loggers
    made = run_one(:ours, <<~RUBY)
      require "stringio"
      output = StringIO.new
      Sidekiq::Logger.new(output).info("own")
      logger = Sidekiq::Logger.new(output, level: :warn)
      logger.formatter = Sidekiq::Logger::Formatters::JSON.new
      logger.info("not")
      logger.warn("json")
      Sidekiq.default_configuration.logger = logger
      Sidekiq.default_configuration.logger.error("again")
      Sidekiq.default_configuration.logger = nil
      Sidekiq.logger.error("silent")
      output.string.lines
    RUBY
    assert_match(/INFO pid=\d+ own/, made.answer[0])
    assert_equal [%w[warn json], %w[error again]], made.answer.drop(1).map { |line| JSON.parse(line).values_at("level", "text") }
  end

  # The worker's own lines have the form that the program wants for its jobs.
  def test_the_form_of_the_worker_s_lines
    worker = start_side(:ours, <<~RUBY)
      Sidekiq.configure_server { |config| config.logger.formatter = Sidekiq::Logger::Formatters::JSON.new }
      Sidekiq.logger.info("of the program")
    RUBY
    soon("it is ready") { worker.log.include?('"text":"the worker is ready"') }
    assert_match(/"text":"of the program"/, worker.log)
  end
end
