# frozen_string_literal: true

class SessionJob < ApplicationJob
  def perform = Seen << "#{Process.pid} #{Session.id}"
end
