# frozen_string_literal: true

require "bench/computing"

module Bench
  # What is sent when a request has come, and has been computed for.
  def self.answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n#{Computing.once}"
end
