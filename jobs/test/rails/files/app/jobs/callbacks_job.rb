# frozen_string_literal: true

class CallbacksJob < ApplicationJob
  before_enqueue { |job| throw :abort if job.arguments == ["no"] }
  before_enqueue { Seen << "before_enqueue" }
  around_enqueue { |_job, block| block.call.tap { Seen << "around_enqueue" } }
  after_enqueue { Seen << "after_enqueue" }
  before_perform { Seen << "before_perform" }
  around_perform { |_job, block| block.call.tap { Seen << "around_perform" } }
  after_perform { Seen << "after_perform" }

  def perform(*) = Seen << "perform"
end
