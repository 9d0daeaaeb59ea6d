# frozen_string_literal: true

class RoomChannel < ApplicationCable::Channel
  def subscribed = stream_from("room")

  def say(data) = ActionCable.server.broadcast("room", { "said" => data["text"], "notes" => Note.count })
end
