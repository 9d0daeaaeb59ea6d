# frozen_string_literal: true

# Enqueues as an action of a user's does: at once, and in a transaction.
class TellsController < ApplicationController
  def create
    Seen << "request #{Process.pid}"
    Seen.wait # so that each request has a thread of its own
    TellJob.perform_later("#{params[:text]} at once")
    Note.transaction do
      Note.create!(text: params[:text])
      LateJob.perform_later("#{params[:text]} after the commit")
      raise ActiveRecord::Rollback if params[:roll_back]
    end
    render json: [Process.pid, Session.id]
  end
end
