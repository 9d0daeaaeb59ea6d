# frozen_string_literal: true

# Is interrupted after its first step when its worker is told to end. Before Rails 8.1 there are no steps.
class StepsJob < ApplicationJob
  if defined?(ActiveJob::Continuable)
    include ActiveJob::Continuable
    self.resume_options = { wait: 0 }
  end

  def perform
    step(:first) do
      Seen << "first"
      sleep 0.01 until Ringspun::Jobs::Worker.stopping?
    end
    step(:second) { Seen << "second #{resumptions}" }
  end
end
