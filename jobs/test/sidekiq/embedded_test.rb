# frozen_string_literal: true

require "support/both_sides"

# A worker inside of another program.
class SidekiqEmbeddedTest < BothSides
  def test_it_runs_jobs_and_ends
    made = both(<<~'RUBY')
      events = Queue.new
      class Work
        include Sidekiq::Job
        EVENTS = Queue.new

        def perform(what) = EVENTS << what
      end
      Sidekiq.configure_server { |config| config.on(:startup) { events << :server } }
      embedded = Sidekiq.configure_embed do |config|
        config.logger = Logger.new(nil)
        config.queues = %w[default low]
        config.on(:shutdown) { events << :shutdown }
      end
      concurrency = Sidekiq.default_configuration.concurrency
      embedded.run
      Work.perform_async("one")
      ran = [Work::EVENTS.pop]
      embedded.quiet
      embedded.stop
      [concurrency, ran, Array.new(2) { events.pop }]
    RUBY
    assert_equal [2, %w[one], %w[server shutdown]], made.answer
  end
end
