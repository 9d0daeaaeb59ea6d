# frozen_string_literal: true

# Waits for the commit.
class LateJob < TellJob
  self.enqueue_after_transaction_commit = true
end
