# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The verbs of storages with tables. A job that is done is gone, as it is with Sidekiq, and no key has a version.
        #
        # @api private
        module WithoutTables
          # (see Storage#done)
          def done(from, count, job_class: nil, queue: nil, from_end: false, connection: nil) = nil

          # (see Storage#find_done)
          def find_done(token, connection: nil) = nil

          # (see Storage#trim_done)
          def trim_done(seconds, connection: nil) = 0

          # (see Storage#version)
          def version(connection: nil) = nil

          # (see Storage#migrate)
          def migrate(connection: nil) = 0
        end
        private_constant :WithoutTables
      end
    end
  end
end
