# frozen_string_literal: true

require "jobs_helper"
require "support/rails_app"
require "support/redis_case"

# A generated application as it was written for Sidekiq. Of all its files one line of the Gemfile is another.
class RailsSidekiqTest < RedisCase
  FILES = {
    "config/initializers/sidekiq.rb" => <<~'RUBY',
      require "sidekiq/middleware/current_attributes"
      Sidekiq::CurrentAttributes.persist("Current")
      Sidekiq.transactional_push!
      Sidekiq.configure_server do |config|
        config.redis = { url: ENV.fetch("REDIS_URL") }
        config.on(:startup) { Tell.call("startup", config.concurrency, Sidekiq.server?.present?) }
        config.death_handlers << ->(job, error) { Tell.call("death", job["wrapped"] || job["class"], error.message) }
      end
      Sidekiq.configure_client { |config| config.redis = { url: ENV.fetch("REDIS_URL") } }
    RUBY
    "config/sidekiq.yml" => ":queues: [default, mail]\n:concurrency: 3\n",
    "app/models/current.rb" => "class Current < ActiveSupport::CurrentAttributes\n  attribute :user\nend\n",
    "app/sidekiq/hard_job.rb" => <<~'RUBY',
      class HardJob
        include Sidekiq::Job
        sidekiq_options queue: "mail", retry: false

        def perform(text)
          Tell.call("hard", text, Current.user, Note.count, Rails.application.executor.active?)
          raise "as told" if text == "fail"
        end
      end
    RUBY
    "app/jobs/soft_job.rb" => <<~'RUBY',
      class SoftJob < ApplicationJob
        queue_as :mail
        sidekiq_options retry: 2, tags: ["soft"]

        def perform(note) = Tell.call("soft", note.text, Current.user)
      end
    RUBY
    "app/models/tell.rb" => <<~'RUBY'
      module Tell
        def self.call(*what) = Sidekiq.redis { |redis| redis.lpush("seen", JSON.generate(what)) }
      end
    RUBY
  }.freeze

  EXECUTABLE = 'load Gem.bin_path("ringspun-jobs", "ringspun-jobs")'

  ENQUEUE = <<~'RUBY'
    raise "a process that only enqueues is no server" if Sidekiq.server?

    Note.connection.create_table(:notes, force: true) { |table| table.string :text }
    note = Note.create!(text: "of the database")
    Current.set(user: 7) do
      HardJob.perform_async("now")
      Note.transaction do
        SoftJob.perform_later(note)
        raise "it does not wait" unless Sidekiq::Queue.new("mail").size == 1
      end
    end
    Note.transaction do
      SoftJob.perform_later(note)
      ActiveJob.perform_all_later(SoftJob.new(note))
      HardJob.perform_async("never")
      HardJob.perform_bulk([["never"]])
      raise ActiveRecord::Rollback
    end
    Note.transaction { HardJob.perform_async("fail") }
    puts "ENTRY #{Sidekiq::Queue.new("mail").find { |job| job.item["wrapped"] }.value}"
  RUBY

  # Beside the application of the other tests, for the paths in the Gemfile.
  def folder
    @folder ||= File.join(File.dirname(RailsApp.folder), "sidekiq-#{Process.pid}").tap do |folder|
      FileUtils.cp_r(RailsApp.folder, folder)
      FileUtils.rm_rf(%w[config/ringspun-jobs.yml bin/jobs app/jobs app/models/current.rb].map { |name| File.join(folder, name) })
      FILES.each { |name, text| write(File.join(folder, name), text) }
      write(File.join(folder, "app/jobs/application_job.rb"), "class ApplicationJob < ActiveJob::Base\nend\n")
      change(File.join(folder, "Gemfile"), /"ringspun-jobs"/, '"ringspun-jobs", require: "ringspun/jobs/sidekiq"')
      change(File.join(folder, "config/application.rb"), "queue_adapter = :ringspun", "queue_adapter = :sidekiq")
    end
  end

  def write(path, text)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
  end

  def change(path, from, to) = File.write(path, File.read(path).sub(from, to))

  def teardown
    super
  ensure
    FileUtils.rm_rf(@folder) if @folder
  end

  def env
    { "REDIS_URL" => "unix://#{redis_path}", "DATABASE_URL" => "sqlite3:#{folder}/one.sqlite3",
      "SECOND_URL" => "sqlite3:#{folder}/two.sqlite3" }
  end

  def seen
    call("PING")
    JSON.parse(@redis.blocking_call(0, "BRPOP", "seen", RailsApp::START_SECONDS)&.last || flunk(@worker.lines.join))
  end

  def test_it_runs_unchanged
    entry = JSON.parse(RailsApp.ruby(folder, "bin/rails", "runner", "require 'sidekiq/api'\n#{ENQUEUE}", env:)[/^ENTRY (.*)$/, 1])
    assert_equal ["SoftJob", 2, ["soft"], "mail"], entry.values_at("wrapped", "retry", "tags", "queue")
    @worker = opened(Command.new(program: ["-W0", "-rbundler/setup", "-e", EXECUTABLE, "--"], chdir: folder,
                                 env: { **RailsApp.env(folder), **env }))
    @worker.await(/the worker is ready/)
    assert_equal ["startup", 3, true], seen
    told = Array.new(4) { seen }
    assert_equal [["death", "HardJob", "as told"], ["hard", "fail", nil, 1, true], ["hard", "now", 7, 1, true],
                  ["soft", "of the database", 7]], told.sort
    assert_predicate @worker.finish, :success?, @worker.lines.join
    assert_equal 0, call("LLEN", "seen"), "of what was rolled back"
  end
end
