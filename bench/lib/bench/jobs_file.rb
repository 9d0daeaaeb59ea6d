# frozen_string_literal: true

module Bench
  # A file of SQLite that has jobs in it, where a server would be: it has what a {RedisServer} has for tables.
  class JobsFile
    # Jobs that are stored in one transaction.
    TOGETHER = 1_000

    # @return [Hash, nil] for `config.storage`, in a process that has its jobs in a file; see {#environment}
    def self.setting
      path, durable = ENV.values_at("BENCH_JOBS_FILE", "BENCH_DURABLE")
      { name: :sqlite, path:, durable: } if path
    end

    # @return [String]
    attr_reader :path

    # @param folder [String] on a disk
    # @param durable [String] "full" or "normal"
    def initialize(folder, durable)
      require "ringspun/jobs"
      require "ringspun/jobs/storage/sqlite"
      @path = File.join(folder, "jobs.sqlite3")
      @durable = durable
    end

    # @return [Hash{String => String}] for processes that have their jobs in it
    def environment = { "BENCH_JOBS_FILE" => @path, "BENCH_DURABLE" => @durable }

    # @return [Ringspun::Jobs::Storage]
    def storage = @storage ||= Ringspun::Jobs::Storage::Sqlite.new(@path, durable: @durable)

    def empty = ["default", :schedule].each { |place| storage.clear(place) }

    # Puts jobs into the queue, or into the schedule.
    #
    # @param entries [Enumerable<String>]
    # @param at [Float, nil] seconds since the epoch
    def push(entries, at: nil)
      entries.each_slice(TOGETHER) do |slice|
        storage.push(slice.map { |entry| Ringspun::Jobs::Storage::Push.new("default", entry, nil, at) })
      end
    end

    # @return [Integer] how many jobs wait in the queue
    def waiting = storage.stats.fetch(:queues).fetch("default", 0)

    # @return [String] one of them
    def entry = storage.list("default", 0, 1).first.entry

    # Jobs in the queues and in flight, and those that have failed.
    def jobs_left
      stats = storage.stats
      { left: stats.fetch(:enqueued) + stats.fetch(:in_flight), failed: stats.fetch(:retries) }
    end
  end
end
