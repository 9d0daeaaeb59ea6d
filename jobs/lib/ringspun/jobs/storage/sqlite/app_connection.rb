# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # The same by the gem sqlite3, for a file that the program itself opens by it. That gem gives the lock of the VM away only
        # while it waits for other writers, so a transaction that waits for the disk stops the threads of the process.
        #
        # @api private
        class AppConnection < Connection
          # Whether an error says that somebody else holds the file.
          def self.busy?(error) = error.is_a?(::SQLite3::BusyException) || error.is_a?(::SQLite3::LockedException)

          # Binds nothing but what is stored.
          #
          # @param statement [SQLite3::Statement] that is not running
          # @return [SQLite3::Statement]
          # @raise [TypeError]
          def self.bind(statement, values)
            values.each_with_index do |value, index|
              known = value.nil? || value.is_a?(Numeric) || value.is_a?(String)
              raise TypeError, "no value of a statement: #{value.class}" unless known

              statement.bind_param(index + 1, value)
            end
            statement
          end

          # @return [Array<Array>] its rows
          def self.step(statement)
            rows = []
            while (row = statement.step)
              rows << row
            end
            rows
          end

          # That gem has no call for several rows.
          def run_all(sql, all) = all.each { |values| run(sql, *values) }

          # (see Connection#changes)
          def changes = value("PRAGMA data_version")

          # (see Connection#without_lock)
          def without_lock = yield

          private

          def open_file
            @db = ::SQLite3::Database.new(@path)
            @db.busy_handler_timeout = (Connection.patience * 1000).ceil # busy_timeout would wait with the lock of the VM
          end

          def execute(sql) = @db.prepare(sql) { |statement| AppConnection.step(statement) }

          def prepare(sql) = @db.prepare(sql)

          def change(statement, values)
            read(statement, values)
            @db.changes
          end

          def read(statement, values)
            AppConnection.step(AppConnection.bind(statement, values))
          ensure
            statement.reset!
          end

          def guard(ending: false)
            yield
          rescue ::SQLite3::Exception => error
            raise AppConnection.busy?(error) ? locked : mapped(error, ending), cause: error
          end
        end
        private_constant :AppConnection
      end
    end
  end
end
