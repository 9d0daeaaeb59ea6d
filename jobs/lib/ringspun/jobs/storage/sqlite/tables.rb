# frozen_string_literal: true

require_relative "tables/kinds"
require_relative "tables/jobs"
require_relative "tables/locks"
require_relative "tables/histories"
require_relative "tables/limits"
require_relative "tables/due"
require_relative "tables/flight"
require_relative "tables/done_jobs"
require_relative "tables/outcomes"
require_relative "tables/nodes"
require_relative "tables/measures"
require_relative "tables/admin"
require_relative "tables/check"
require_relative "tables/looks"
require_relative "tables/crons"

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # What the verbs do inside a transaction, by one connection. What it remembers of the tables is true until that ends.
        #
        # @api private
        class Tables
          include Kinds
          include Jobs
          include Locks
          include Histories
          include Limits
          include Due
          include Flight
          include DoneJobs
          include Outcomes
          include Nodes
          include Measures
          include Admin
          include Check
          include Looks
          include Crons

          # @return [Array<String>] names of queues where there are jobs that were not there before
          attr_reader :woken

          # @param connection [Connection]
          # @param milliseconds [Boolean] see {Config#milliseconds}
          # @param history [Numeric] see {Config#history}
          # @param lock_file [LockFile]
          def initialize(connection, milliseconds:, history:, lock_file:)
            @connection = connection
            @milliseconds = milliseconds
            @history_seconds = history
            @lock_file = lock_file
            begin_anew
          end

          # To be called before each transaction.
          #
          # @return [nil]
          def begin_anew
            @woken = []
            @queue_ids = {}
            @used = {} # queues which the table says somebody has pushed to
            @node_ids = {}
            @most = @histories = nil
            @next = @front = nil
            @counts = Hash.new(0)
            @grown = Hash.new(0) # queues, by their numbers, and sets => by how many jobs
            nil
          end

          # To be called at the end of each transaction that writes.
          #
          # @return [nil]
          def finish
            run("UPDATE state SET next = ?, front = ?", @next, @front) if @next
            note_sizes
            return if @counts.empty?

            run("UPDATE state SET processed = processed + ?, failed = failed + ?, twice = twice + ?",
                *@counts.values_at(:processed, :failed, :twice))
            nil
          end

          # A process of before the last boot has no lease any more, whatever the clock says.
          #
          # @return [nil]
          def note_boot
            return if value("SELECT boot FROM state") == Tables.boot

            run("UPDATE state SET boot = ?, base = ?, beaten = NULL", Tables.boot, base_now)
            run("UPDATE nodes SET lease = 0, gone = NULL WHERE lease IS NOT NULL")
            run("UPDATE places SET waits_until = 0")
            run("DELETE FROM old_runs")
            nil
          end

          # @return [Float] seconds since the epoch
          def now = Process.clock_gettime(Process::CLOCK_REALTIME)

          # @return [String] which differs from that of the boot before
          def self.boot = @boot ||= File.read("/proc/sys/kernel/random/boot_id").strip

          private

          # What is kept for a time ends by a clock that is not set: the time of day when the host was started, and how long that
          # is ago. Only what is due at a time goes by the time of day.
          def lasting = base + since_boot

          def base
            @base || begin
              boot, base = row("SELECT boot, base FROM state")
              boot == Tables.boot ? @base = base : base_now # who reads may come before anybody has written
            end
          end

          def base_now = now - since_boot

          def since_boot = Process.clock_gettime(Process::CLOCK_BOOTTIME)

          # Leases and what holds places go by a clock that nobody sets. All processes have the same one: they are on one host.
          def steady = Process.clock_gettime(Process::CLOCK_MONOTONIC)

          def note_sizes
            @grown.each do |place, by|
              next if by.zero?
              next run("UPDATE queues SET size = size + ? WHERE id = ?", by, place) if place.is_a?(Integer)

              run("UPDATE set_sizes SET size = size + ? WHERE kind = ?", by, kind_of(place))
            end
          end

          def run(sql, *values) = @connection.run(sql, *values)
          def run_all(sql, all) = @connection.run_all(sql, all)
          def rows(sql, *values) = @connection.rows(sql, *values)
          def row(sql, *values) = @connection.row(sql, *values)
          def value(sql, *values) = @connection.value(sql, *values)

          # SQLite takes binary strings for what is no text, and never for equal to a text.
          def text(string)
            return string if string.nil? || string.encoding == Encoding::UTF_8

            string.encoding == Encoding::BINARY ? string.dup.force_encoding(Encoding::UTF_8) : string.encode(Encoding::UTF_8)
          end

          def next_number(count = 1)
            @next || read_numbers
            number = @next
            @next += count
            number
          end

          def next_in_front
            @front || read_numbers
            number = @front
            @front -= 1
            number
          end

          def read_numbers = (@next, @front = row("SELECT next, front FROM state"))

          # @return [Integer, nil] nil: there is no such token
          def number_of(token)
            number = Integer(token, 10, exception: false)
            number if number && number < 1 << 62
          end

          # @return [Integer, nil] nil: nobody has ever named it
          def known_queue(name) = @queue_ids[name] ||= value("SELECT id FROM queues WHERE name = ?", text(name))

          def queue_id(name)
            known_queue(name) || begin
              run("INSERT INTO queues (name) VALUES (?)", text(name))
              known_queue(name)
            end
          end
        end
        private_constant :Tables
      end
    end
  end
end
