# frozen_string_literal: true

require "fileutils"
require "support/heard_process"
require "support/rails_app"
require "tmpdir"

# An application that `rails new` has generated, with the gem ringspun-http and the files of test/rails/files. It stays in tmp/,
# one for each version of Rails and Ruby, until something that it was made of has changed.
class RailsSite
  FILES = File.join(RailsApp::ROOT, "http/test/rails/files")
  # Nothing that the tests have no use for; streams and files they have.
  WITHOUT = (RailsApp::WITHOUT - %w[active-storage action-cable] + %w[asset-pipeline javascript hotwire jbuilder]).freeze
  # The versions of the gems are those of the other generated applications.
  GEM = "gem \"ringspun-http\", path: \"../../../../http\"\n"
  LOCKED = <<~TEXT
    PATH
      remote: ../../../../http
      specs:
        ringspun-http (0.1.0)
          rack (>= 3.1)
          ringspun (= 0.1.0)

  TEXT

  TABLES = <<~'RUBY'
    ActiveRecord::Migration.verbose = false
    require Dir[ActiveStorage::Engine.root.join("db/migrate/*_create_active_storage_tables*")].first
    ActiveRecord::Schema.define { create_table(:notes) { |table| table.string :text } }
    CreateActiveStorageTables.new.migrate(:up)
    3.times { |number| Note.create!(text: number) }
  RUBY

  # Where a name has two addresses, the first of them.
  LISTENS = %r{Listening on http://127\.0\.0\.1:(\d+)$}

  class << self
    # @return [String] the folder of the application, made when there is none yet
    def folder = @folder ||= made(File.join(RailsApp::ROOT, "tmp/rails/#{RailsApp::VERSION}-#{RUBY_VERSION[/\d+\.\d+/]}/site"))

    # What a server or a program of the application has around it: its database and its files are those of one process of tests.
    def env
      RailsApp.env(folder).merge("SITE" => data, "RAILS_MAX_THREADS" => "50", "CROWD" => "#{data}/crowd",
                                 "PATH" => "#{RbConfig::CONFIG["bindir"]}:#{ENV.fetch("PATH")}")
    end

    # @return [String] the folder of the database, of files that are uploaded, and of the test's socket
    def data
      @data ||= Dir.mktmpdir("ringspun-site-").tap do |path|
        Minitest.after_run { FileUtils.rm_rf(path) }
        FileUtils.cp(Dir["#{folder}/storage/site.sqlite3*"], path)
      end
    end

    # A server that has begun to listen, and its port.
    #
    # @return [Array(HeardProcess, Integer)]
    def server(*arguments, folder: self.folder, env: {})
      options = { chdir: folder, seconds: RailsApp::START_SECONDS, env: { **self.env, **env } }
      command = HeardProcess.new("bin/rails", "server", "-u", "ringspun", "-p", "0", *arguments, **options)
      [command, Integer(command.await(LISTENS)[1])]
    rescue StandardError
      command&.close
      raise
    end

    private

    def made(folder)
      FileUtils.mkdir_p(File.dirname(folder))
      File.open(File.join(RailsApp::ROOT, "tmp/rails.lock"), File::CREAT | File::RDWR) do |lock|
        lock.flock(File::LOCK_EX)
        stamp = "#{folder}.stamp"
        next if File.exist?(stamp) && File.read(stamp) == fingerprint

        generate(folder)
        File.write(stamp, fingerprint)
      end
      folder
    end

    def generate(folder)
      FileUtils.rm_rf(folder)
      skipped = WITHOUT.map { |name| "--skip-#{name}" }
      RailsApp.ruby(File.dirname(folder), "-rbundler/setup", "-e", 'load Gem.bin_path("railties", "rails")', "--", "new",
                    File.basename(folder), "--quiet", *skipped, env: { "BUNDLE_GEMFILE" => File.join(RailsApp::GEMS, "Gemfile") })
      add_gems(folder)
      FileUtils.cp_r("#{FILES}/.", folder)
      settle(folder)
      RailsApp.ruby(folder, "-r", "./config/environment", "-e", TABLES)
    end

    # Instead of the line `gem "ringspun-http"` and `bundle install`.
    def add_gems(folder)
      root = Pathname(RailsApp::ROOT).relative_path_from(folder)
      lock = File.read(File.join(RailsApp::GEMS, "Gemfile.lock")).sub("remote: ../../..\n", "remote: #{root}/jobs\n")
      lock = lock.sub("GEM\n", "#{LOCKED}GEM\n").sub("  ringspun-jobs!\n", "  ringspun-http!\n  ringspun-jobs!\n")
      gems = File.read(File.join(RailsApp::GEMS, "Gemfile")).sub(/^(gem "ringspun-jobs".*)$/, '\1, require: false') + GEM
      { "Gemfile" => gems, "Gemfile.lock" => lock }.each do |name, text|
        File.write(File.join(folder, name), text.gsub("../../../../", "#{root}/"))
      end
    end

    # A log in a file, and clear text, for there is no proxy in front.
    def settle(folder)
      path = "#{folder}/config/environments/production.rb"
      text = File.read(path).gsub(/^  config\.(force|assume)_ssl = true$/, "").sub("(STDOUT)", '("log/production.log")')
      File.write(path, text)
    end

    def fingerprint
      files = [__FILE__, *Dir["#{FILES}/**/*"], *Dir["#{RailsApp::GEMS}/Gemfile*"]]
      Digest::SHA256.hexdigest(files.select { |path| File.file?(path) }.sort.map { |path| File.read(path) }.join("\0"))
    end
  end
end
