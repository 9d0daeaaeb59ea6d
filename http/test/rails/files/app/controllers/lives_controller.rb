# frozen_string_literal: true

# Server-sent events, until the client goes away.
class LivesController < ApplicationController
  include ActionController::Live

  def show
    response.headers["content-type"] = "text/event-stream"
    response.headers["last-modified"] = Time.now.httpdate # or Rack::ETag would wait for all of it
    events = SSE.new(response.stream)
    events.write("#{Note.count} notes", event: "count")
    loop do
      Crowd.wait
      events.write("more")
    end
  rescue ActionController::Live::ClientDisconnected, IOError => error
    Crowd.wait(error.class.name)
  ensure
    events&.close
  end
end
