# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # What a worker was made with.
      #
      # - `node`: its name in the storage
      # - `extends_lease`: false: somebody else extends it
      # - `quarantine`: nil: it leaves jobs from the quarantine to others
      # - `queue_order`, `runs`, `control`: what the worker shows and changes, before it runs and meanwhile
      #
      # @api private
      Setup = Data.define(:node, :config, :storage, :log, :extends_lease, :quarantine, :random, :queue_order, :runs, :control)
      private_constant :Setup
    end
  end
end
