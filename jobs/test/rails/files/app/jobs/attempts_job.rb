# frozen_string_literal: true

class AttemptsJob < ApplicationJob
  class NotYet < StandardError; end
  class NeverMind < StandardError; end

  retry_on NotYet, wait: 0, attempts: 3
  discard_on(NeverMind) { |job, error| Seen << "discarded #{error.message} #{job.executions}" }
  after_discard { |_job, error| Seen << "after_discard #{error.class}" }

  def perform(what)
    case what
    when "late" then executions < 3 ? raise(NotYet) : Seen << "attempt #{executions} #{provider_job_id.size}"
    when "exhausted" then raise NotYet
    when "discard" then raise NeverMind, "gone"
    when "fail" then raise ArgumentError, "no"
    end
  end
end
