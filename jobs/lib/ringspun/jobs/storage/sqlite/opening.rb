# frozen_string_literal: true

module Ringspun
  module Jobs
    module ActiveRecord
      # Refuses a connection to a file of jobs that this process has opened by another copy of SQLite: two of them drop each
      # other's locks. A storage asks for the settings of Active Record when it opens the file, and these came later.
      #
      # @api private
      module Opening
        private

        def connect
          Storage::Sqlite.refuse_other(@connection_parameters[:database].to_s, :sqlite3) if Storage.const_defined?(:Sqlite, false)
          super
        end
      end
      private_constant :Opening

      ::ActiveSupport.on_load(:active_record_sqlite3adapter) { prepend Opening }
    end
  end
end
