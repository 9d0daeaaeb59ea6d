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
      %w[sidekiq sidekiq/job sidekiq/worker sidekiq/client sidekiq/middleware/chain].each { |name| require name }
      puts Sidekiq.equal?(Ringspun::Jobs::Sidekiq), $LOADED_FEATURES.grep(%r{gems/sidekiq-}).size, Sidekiq::Job
    RUBY
    assert_predicate child.wait, :success?, child.log
    assert_equal %w[true 0 Sidekiq::Job], child.log.lines(chomp: true)
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
