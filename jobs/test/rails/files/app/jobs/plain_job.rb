# frozen_string_literal: true

class PlainJob
  include Ringspun::Jobs::Job
  job_options after_commit: true

  def perform(text) = Seen << text
end
