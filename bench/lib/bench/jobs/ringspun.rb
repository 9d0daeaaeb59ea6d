# frozen_string_literal: true

require "etc"
require "net/http"
require "ringspun/jobs"
require "bench/jobs_file"

JOB = Ringspun::Jobs::Job
require "bench/jobs/classes"

module Bench
  module Jobs
    # The three strategies of the seed, with pools as large as there are cores, and group commit.
    class Ringspun
      def self.connect(server, strategy: :group_commit, **)
        ::Ringspun::Jobs.configure do |config|
          config.redis = { url: server.url }
          config.strategy = strategy
          config.pool_size = Etc.nprocessors
        end
      end

      # @param store [JobsFile]
      def self.connect_to(store) = ::Ringspun::Jobs.configure { |config| config.storage = store.storage }
    end
  end
end

# In a process that has its jobs in a file.
Bench::JobsFile.setting&.then { |setting| Ringspun::Jobs.configure { |config| config.storage = setting } }
