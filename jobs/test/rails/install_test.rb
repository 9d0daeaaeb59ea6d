# frozen_string_literal: true

require "support/rails_case"

# `rails generate ringspun:install`.
class RailsInstallTest < Minitest::Test
  include Servers::Redis

  def install(folder, **) = RailsApp.run(folder, "bin/rails", "generate", "ringspun:install", env: environment, **)

  def environment
    { "REDIS_URL" => "unix://#{redis_path}", "SEEN" => redis_path, "DATABASE_URL" => "sqlite3::memory:",
      "SECOND_URL" => "sqlite3::memory:", "RAILS_ENV" => "development" }
  end

  def files(folder)
    paths = Dir["#{folder}/{*,config/**/*,bin/*}"].select { |path| File.file?(path) }
    paths.to_h { |path| [path, [File.read(path), File.stat(path).mode]] }
  end

  def test_what_is_installed
    RailsApp.copy do |folder|
      text = File.read("#{folder}/config/application.rb")
      assert_equal 1, text.scan("config.active_job.queue_adapter = :ringspun").size
      FileUtils.rm_rf(["#{folder}/config/ringspun-jobs.yml", "#{folder}/storage"])
      install(folder)
      settings = YAML.load_file("#{folder}/config/ringspun-jobs.yml")
      assert_equal({ "storage" => "sqlite:storage/jobs.sqlite3", "queues" => ["*"] }, settings)
      assert_path_exists "#{folder}/storage/.keep"
      assert_predicate File.stat("#{folder}/bin/jobs"), :executable?
      before = files(folder)
      output = install(folder)
      assert_match(%r{bin/jobs runs them}, output)
      assert_equal before, files(folder), "again, it changes nothing"
    end
  end

  # As one of an application that was made before jobs could be in a file, and one that was written for Sidekiq.
  def test_nobody_is_moved
    RailsApp.copy do |folder|
      before = File.read("#{folder}/config/ringspun-jobs.yml")
      assert_match(/^redis: /, before)
      install(folder)
      assert_equal before, File.read("#{folder}/config/ringspun-jobs.yml")
      File.delete("#{folder}/config/ringspun-jobs.yml")
      gemfile = "#{folder}/Gemfile"
      File.write(gemfile, File.read(gemfile).sub(/^gem "ringspun-jobs".*$/, '\0, require: "ringspun/jobs/sidekiq"'))
      install(folder, fresh: true)
      assert_match(/^redis: <%= ENV\.fetch\("REDIS_URL", "redis:.*^queues: /m, File.read("#{folder}/config/ringspun-jobs.yml"))
    end
  end

  def test_an_application_with_solid_queue_and_a_procfile
    RailsApp.copy do |folder|
      production = "#{folder}/config/environments/production.rb"
      File.write(production, File.read(production).sub("do\n", "do\n  config.active_job.queue_adapter = :solid_queue\n"))
      File.write("#{folder}/bin/jobs", "#!/usr/bin/env ruby\nrequire \"solid_queue/cli\"\n")
      File.write("#{folder}/Procfile.dev", "web: bin/rails server\n")
      2.times { install(folder) }
      assert_match(/^  config\.active_job\.queue_adapter = :ringspun$/, File.read(production))
      assert_match(/solid_queue/, File.read("#{folder}/bin/jobs"))
      assert_predicate File.stat("#{folder}/bin/ringspun-jobs"), :executable?
      assert_equal "web: bin/rails server\nringspun: bin/ringspun-jobs\n", File.read("#{folder}/Procfile.dev")
    end
  end
end
