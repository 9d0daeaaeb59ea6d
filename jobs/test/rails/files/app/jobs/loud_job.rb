# frozen_string_literal: true

# Logs by each of the loggers that a job has.
class LoudJob < ApplicationJob
  def perform(what)
    Rails.logger.info("by Rails")
    Rails.logger.tagged("a tag") { Rails.logger.warn("with a tag") }
    logger.info("by Active Job")
    raise ArgumentError, "as told" if what == "fail"

    Seen << what
    Seen.wait if what == "wait"
  end
end
