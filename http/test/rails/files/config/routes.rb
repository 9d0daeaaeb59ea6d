# frozen_string_literal: true

Rails.application.routes.draw do
  get "up", to: "rails/health#show"
  get "strands/:number", to: "states#strands"
  get "events", to: "states#events"
  get "state/:number", to: "states#show"
  get "connection", to: "states#connection"
  get "count", to: "states#count"
  get "live", to: "lives#show"
  get "file", to: "files#show"
  post "uploads", to: "files#create"
  get "greeting", to: "greetings#show"
  get "slow", to: "greetings#slow"
  get "hints", to: "greetings#hints"
  get "boom", to: "greetings#boom"
end
