# frozen_string_literal: true

require_relative "../runtime/gem_pages"

Gem::Specification.new do |spec|
  spec.name = "ringspun-jobs"
  spec.version = Ringspun::VERSION
  spec.authors = ["Ringspun contributors"]
  spec.summary = "Background jobs in strands, on the wire format of Sidekiq and Exq."
  spec.description = "Enqueues by group commit and runs thousands of jobs at once in one process, in a file or on the Redis " \
                     "and in the job format that Sidekiq and Exq use, and loses none of them."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.3"

  spec.add_dependency "extralite-bundle", "~> 2.15" # SQLite, in it, for jobs without a server
  spec.add_dependency "fugit", "~> 1.11" # reads what cron entries say: schedules in words or as crontab has them, time zones
  spec.add_dependency "logger", "~> 1.6" # the log; from Ruby 4.0 on a gem like any other
  spec.add_dependency "redis-client", "~> 0.26" # speaks to Redis: TLS, Sentinel, Unix sockets, the protocol
  spec.add_dependency "ringspun", Ringspun::VERSION # strands, and the scheduler that makes redis-client wait in them

  spec.files = Dir.chdir(__dir__) do
    Dir["{CHANGELOG.md,LICENSE,README.md}", "{exe,lib,sig}/**/*"].select { |path| File.file?(path) }.sort
  end
  spec.bindir = "exe"
  spec.executables = ["ringspun-jobs"]
  spec.require_paths = ["lib"]
  spec.homepage = GemPages::HOME
  spec.metadata = GemPages.of(spec.name)
end
