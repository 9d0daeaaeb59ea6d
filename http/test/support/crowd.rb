# frozen_string_literal: true

require "socket"

# The test's end of what requests wait for: see test/rails/files/app/models/crowd.rb.
class Crowd
  def initialize(path)
    @server = UNIXServer.new(path)
    @waiting = []
  end

  # Until as many requests wait.
  #
  # @return [Array<String>] what they say
  def gather(count)
    come = Array.new(count) { @server.accept }
    @waiting.concat(come)
    come.map { |socket| socket.gets.chomp }
  end

  # Lets all go on that wait.
  def go
    @waiting.each do |socket|
      socket.puts("go")
      socket.close
    end
    @waiting.clear
  end

  # @return [String] what the one that waits answers
  def ask
    @waiting.first.puts("?")
    @waiting.first.gets.chomp
  end

  def close
    path = @server.path
    [@server, *@waiting].each(&:close)
    File.unlink(path)
  end
end
