# frozen_string_literal: true

require "ringspun/jobs/sidekiq"

Ringspun::Jobs::Sidekiq.refuse_file("sidekiq/web",
                                    "mount Ringspun::Jobs::Web in its place, or have a program with the gem show Sidekiq's pages")
