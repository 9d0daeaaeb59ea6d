# frozen_string_literal: true

# What one run keeps in Current, others do not see.
class CurrentJob < ApplicationJob
  def perform(user)
    before = Current.user.inspect
    Current.user = user
    sleep 0.05 # others run
    Seen << "#{before} #{Current.user == user} #{Note.connection_pool.active_connection?.inspect}"
  end
end
