# frozen_string_literal: true

require "ringspun/jobs/sidekiq"

Ringspun::Jobs::Sidekiq.refuse_file("sidekiq/transaction_aware_client",
                                    "call Sidekiq.transactional_push!, or give jobs the option after_commit: true")
