# frozen_string_literal: true

require "json"
require "socket"
require "websocket/driver"

# A client of the gem websocket-driver, which Rails has at the other end.
class WebSocketClient
  # @yieldparam client [WebSocketClient] closed after the block
  def self.open(host, port, path)
    client = new(TCPSocket.new(host, port), "ws://#{host}:#{port}#{path}")
    yield client
  ensure
    client&.close
  end

  attr_reader :url

  def initialize(socket, url)
    @socket = socket
    @url = url
    @messages = []
    @driver = WebSocket::Driver.client(self, protocols: ["actioncable-v1-json"])
    @driver.on(:message) { |event| @messages << JSON.parse(event.data) }
    @driver.on(:close) { @closed = true }
    @driver.start
  end

  # For the driver.
  def write(bytes) = @socket.write(bytes)

  def tell(**message) = @driver.text(JSON.generate(message))

  def message
    until (message = @messages.shift)
      raise "closed, with status #{@driver.status}" if @closed

      @socket.wait_readable(60) or raise "no message"
      @driver.parse(@socket.readpartial(65_536))
    end
    message
  end

  # The next one that is not of this type.
  def message_but(type)
    loop do
      message = self.message
      return message unless message["type"] == type
    end
  end

  # Hears the other end say so too.
  def close
    @driver.close
    @driver.parse(@socket.readpartial(65_536)) until @closed
  rescue EOFError
    nil
  ensure
    @socket.close
  end
end
