# frozen_string_literal: true

# Ends its process the first time.
class DeadlyJob < ApplicationJob
  def perform
    first = Note.where(text: "tried").none?
    Note.create!(text: "tried")
    Process.kill(:KILL, Process.pid) if first
    Seen << "#{Process.pid} #{Session.id}"
  end
end
