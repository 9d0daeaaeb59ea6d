# frozen_string_literal: true

require "bench/jobs_file"
require "bench/postgres_server"

module Bench
  # Where a Rails application has its tables, for one sample: samples of a test run side by side.
  module RailsDatabase
    # In the private Postgres.
    class OnServer
      # @param connections [Integer] of each process
      def initialize(library, connections)
        @postgres = PostgresServer.start
        @name = "#{library}_#{Process.pid}"
        @connections = connections
      end

      # @return [Hash{String => String}] for the processes of the application
      def environment
        { "DATABASE_URL" => "postgresql:///#{@name}?host=#{@postgres.folder}&user=ringspun&pool=#{@connections}" }
      end

      # Yields while it is there.
      def during
        @postgres.ask("create database #{@name}")
        yield
      ensure
        @postgres.ask("drop database if exists #{@name} with (force)")
      end

      # @return [Integer]
      def count(sql) = Integer(@postgres.ask(sql, database: @name))
    end

    # In a file of SQLite, as a new Rails application has it. Our jobs have another file, as they do there.
    class InFile
      # @param folder [String] on a disk
      # @param connections [Integer] of each process
      # @param durable [String] how our jobs are kept
      def initialize(folder, connections, durable)
        @path = File.join(folder, "rails.sqlite3")
        @connections = connections
        @jobs = JobsFile.new(folder, durable)
      end

      # (see OnServer#environment)
      def environment = { "DATABASE_URL" => "sqlite3:#{@path}?pool=#{@connections}&timeout=5000", **@jobs.environment }

      # (see OnServer#during)
      def during = yield

      # (see OnServer#count)
      def count(sql)
        require "extralite"
        database = Extralite::Database.new(@path)
        database.query_splat(sql).first
      ensure
        database&.close
      end

      # (see JobsFile#jobs_left)
      def jobs_left = @jobs.jobs_left
    end
  end
end
