# frozen_string_literal: true

# Runs until the test says so.
class HoldJob < ApplicationJob
  def perform
    Seen << "holds"
    Seen.wait
    Seen << "held"
  end
end
