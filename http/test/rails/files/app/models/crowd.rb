# frozen_string_literal: true

require "socket"

# Requests that wait until the test says go: each connects to its socket.
module Crowd
  # @param word [String] the test hears it first
  # @yieldreturn [#to_s] the answer to all that the test says before it says go
  def self.wait(word = "here")
    UNIXSocket.open(ENV.fetch("CROWD")) do |socket|
      socket.puts(word)
      socket.puts(yield) until socket.gets.to_s.chomp == "go"
    end
  end
end
