# frozen_string_literal: true

require "ringspun/jobs/sidekiq"

Ringspun::Jobs::Sidekiq.refuse_file("sidekiq/deploy", "require it in a program that has the gem")
