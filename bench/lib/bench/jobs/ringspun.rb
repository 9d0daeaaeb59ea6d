# frozen_string_literal: true

require "etc"
require "ringspun/jobs"
require "bench/enqueuing"

# The job that the tables of jobs enqueue and run, for Ringspun. In the program that enqueues and in the worker.
class HardJob
  include Ringspun::Jobs::Job

  def perform(*)
  end
end

module Bench
  module Jobs
    # The three ways of the seed, whose pools are as large as there are cores, and group commit.
    class Ringspun
      def self.connect(server, strategy: :group_commit, **)
        ::Ringspun::Jobs.configure do |config|
          config.redis = { url: server.url }
          config.strategy = strategy
          config.pool_size = Etc.nprocessors
        end
      end
    end
  end
end
