# frozen_string_literal: true

require "test_helper"
require "support/stock"

# Active Record must lend its connections to fibers: what is said where it lends them to threads, and what a Rails application has
# of it without a line. Each in a process of its own, where neither has been loaded.
class StockActiveRecordIsolationTest < Minitest::Test
  include Stock

  # --- the level of isolation ---

  GEMS = { "RUBYLIB" => $LOAD_PATH.join(File::PATH_SEPARATOR) }.freeze

  # Without a database: what counts is the notification of a query.
  QUERIES = <<~'RUBY'
    $VERBOSE = false
    query = proc { ActiveSupport::Notifications.instrument("sql.active_record", sql: "SELECT 1") {} }
    load_it = proc { require "active_record"; ActiveRecord::Base.name }
  RUBY

  WARNING = /\Aringspun:\ Active\ Record\ .*`ActiveSupport::IsolatedExecutionState\.isolation_level\ =\ :fiber`.*
             `config\.active_support\.isolation_level\ =\ :fiber`\n\z/x

  def assert_warns_once(code)
    answer = child(QUERIES + code, env: GEMS)
    assert_match WARNING, answer.err
    assert_equal 1, answer.err.lines.size
    assert_predicate answer.status, :success?
  end

  def test_isolation_by_threads_is_told_at_the_first_query
    assert_warns_once("load_it.call; query.call; Ringspun.run { 2.times { machine.spin(&query) } }; Ringspun.run(&query)")
  end

  def test_isolation_by_threads_where_active_record_comes_before_us
    answer = ruby_child("#{QUERIES}load_it.call; require 'ringspun'; Ringspun.run(&query)", env: GEMS, fresh: true)
    assert_match WARNING, answer.err
  end

  def test_isolation_by_threads_where_active_record_comes_in_the_run
    assert_warns_once("require 'active_support'; Ringspun.run { load_it.call; query.call; query.call }")
  end

  # All of it, Active Support included, after the first strands of the run.
  def test_isolation_by_threads_where_active_support_comes_in_the_run
    assert_warns_once("Ringspun.run { machine.spin {}; load_it.call; 2.times { machine.spin(&query) } }")
    assert_warns_once("Ringspun.run { machine.spin {}; load_it.call; 2.times { Ringspun.concurrently(&query).await_result } }")
  end

  def test_isolation_by_threads_where_active_support_comes_under_a_scheduler
    assert_warns_once("Thread.new { Fiber.set_scheduler(Ringspun::Scheduler.new); load_it.call; Fiber.schedule(&query) }.join")
  end

  def test_the_main_ractor_alone_has_active_record
    assert_child("[:done]\n", <<~RUBY, env: GEMS)
      $VERBOSE = nil
      require "active_support"
      ractor = Ractor.new { Ringspun.run { |machine| machine.await(machine.spin { :done }) } }
      p ractor.respond_to?(:take) ? ractor.take : ractor.value
    RUBY
  end

  def test_isolation_by_threads_with_a_scheduler_and_no_run
    assert_warns_once("load_it.call; Thread.new { Fiber.set_scheduler(Ringspun::Scheduler.new); Fiber.schedule(&query) }.join")
  end

  def test_isolation_by_fibers_and_queries_outside_of_a_run_are_not_told
    assert_child("", <<~RUBY, env: GEMS)
      #{QUERIES}
      load_it.call
      Ringspun.run {}
      query.call
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      Ringspun.run(&query)
    RUBY
  end

  # Rails itself would bring what takes longer to install than all the rest: so much of it as there is to it for this.
  RAILS = <<~'RUBY'
    require "active_support"
    require "active_support/ordered_options"
    module Rails
      class Railtie
        Initializer = Struct.new(:name, :options, :block)
        def self.initializers = (@initializers ||= [])
        def self.initializer(name, **options, &block) = initializers << Initializer.new(name, options, block)
      end
    end
    $LOADED_FEATURES << File.join(Dir.pwd, "rails/railtie.rb") # is there
    $LOAD_PATH.unshift(Dir.pwd)
    app = Struct.new(:config).new(Struct.new(:active_support).new(ActiveSupport::OrderedOptions.new))
  RUBY

  # Fresh, for ringspun looks for Rails when it is loaded.
  def railtie_child(code) = ruby_child("$VERBOSE = nil\n#{RAILS}#{code}", env: GEMS, fresh: true)

  def test_the_railtie_isolates_by_fiber
    ["require 'ringspun'", "require 'ringspun/railtie'"].each do |line|
      answer = railtie_child(<<~RUBY)
        #{line}
        initializer, = Ringspun::Railtie.initializers
        p initializer.options
        initializer.block.call(app)
        p app.config.active_support.isolation_level
      RUBY
      assert_equal "{:before=>\"active_support.isolation_level\"}\n:fiber\n", answer.out.gsub("before: ", ":before=>"), answer.err
    end
  end

  def test_the_railtie_is_not_required_while_it_is_loaded
    ["require 'ringspun'", "require 'ringspun/railtie'"].each do |line|
      answer = railtie_child("$VERBOSE = true\n#{line}\np Ringspun::Railtie.initializers.size\n")
      assert_equal ["1\n", []], [answer.out, answer.err.lines.grep(/circular/)]
    end
  end

  def test_the_railtie_leaves_what_the_application_has_set
    answer = railtie_child(<<~RUBY)
      require "ringspun"
      app.config.active_support.isolation_level = :thread
      Ringspun::Railtie.initializers.first.block.call(app)
      p app.config.active_support.isolation_level
    RUBY
    assert_equal ":thread\n", answer.out, answer.err
  end
end
