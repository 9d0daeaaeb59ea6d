# frozen_string_literal: true

class TellJob < ApplicationJob
  def perform(text) = Seen << text
end
