# frozen_string_literal: true

class NoteJob < ApplicationJob
  def perform(note) = Seen << "#{note.text} #{ActiveSupport::IsolatedExecutionState.isolation_level}"
end
