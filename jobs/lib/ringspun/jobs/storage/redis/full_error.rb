# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The server is out of memory.
        class FullError < StorageError; end
      end
    end
  end
end
