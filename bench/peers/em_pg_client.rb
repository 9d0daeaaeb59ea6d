# frozen_string_literal: true

require "open3"
require "rbconfig"
require "bench/workspace"

# The gem `em-pg-client` 0.3.4, which runs unchanged on today's pg and EventMachine. But it requires EventMachine 1.0, and the
# Gemfile has a newer one. So it is not in the Gemfile, but is installed once without its dependencies, beside what the bench
# compiles.

version = "0.3.4"
folder = File.join(Bench::Workspace.build_directory, "gems")
library = File.join(folder, "gems/em-pg-client-#{version}/lib")

install = lambda do
  command = [RbConfig.ruby, "-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV)", "install", "em-pg-client", "--version",
             version, "--install-dir", folder, "--ignore-dependencies", "--no-document"]
  without_bundler = %w[RUBYLIB RUBYOPT GEM_HOME GEM_PATH BUNDLE_GEMFILE BUNDLER_SETUP].to_h { |name| [name, nil] }
  output, status = Open3.capture2e(without_bundler, "timeout", "20", *command)
  raise LoadError, "em-pg-client cannot be installed: #{output.lines.grep(/ERROR/).first || "no answer"}" unless status.success?
end
File.open("#{folder}.lock", "w") do |lock|
  lock.flock(File::LOCK_EX)
  install.call unless File.directory?(library)
end

$LOAD_PATH.unshift(library)
require "pg/em/connection_pool"

module Bench
  # The seed's patch: a wait for a result blocks the reactor.
  module BlockingResults
    def fetch_results
      self.notify_readable = false
      result = @client.sync_get_last_result
    rescue StandardError => error
      @deferrable.fail(error)
    else
      @deferrable.succeed(result)
    end
  end

  # A fiber in its reactor, whose value another one can await.
  class EventFiber
    # Runs the block in such a fiber, and ends the reactor after it.
    def self.run
      value = nil
      EM.epoll
      EM.run do
        new do
          value = yield
          EM.stop
        end
      end
      value
    end

    def initialize(&work)
      Fiber.new do
        @value = work.call
        @ended = true
        @waiting&.resume
      end.resume
    end

    def value
      unless @ended
        @waiting = Fiber.current
        Fiber.yield
      end
      @value
    end
  end
end
