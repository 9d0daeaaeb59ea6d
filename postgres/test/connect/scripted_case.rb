# frozen_string_literal: true

require_relative "connect_case"
require "openssl"
require "support/certificate"

# With a server on a socket that says what a test has it say: whatever the protocol allows, and what it does not.
class ScriptedCase < ConnectCase
  # The client, as the server's side sees it.
  class Client
    STARTUP = { tls: 80_877_103, cancel: 80_877_102 }.freeze
    OK = "R\0\0\0\x08\0\0\0\0"
    READY = "Z\0\0\0\x05I"

    attr_reader :stream

    def initialize(stream)
      @stream = stream
    end

    # @return [Array(Integer, String)] the version or code that it begins with, and the rest
    def begin
      length = @stream.read(4)&.unpack1("N") or raise Ringspun::EndOfStreamError
      @stream.read(length - 4).unpack("Na*")
    end

    # What it says after the version.
    def parameters = self.begin.last.split("\0").each_slice(2).to_h

    # @return [String] the body of its next message
    def message
      _, length = @stream.read(5).unpack("aN")
      @stream.read(length - 4)
    end

    def say(*bytes) = @stream.write(*bytes)

    # @param request [Integer] that of an Authentication message
    def ask(request, rest = "") = say(Client.message("R", [request].pack("N") + rest))

    def refuse(sqlstate, message = "no") = say(Client.message("E", "SFATAL\0C#{sqlstate}\0M#{message}\0\0".b))

    def welcome(**settings)
      said = settings.map { |name, value| Client.message("S", "#{name}\0#{value}\0") }
      say(OK, *said, Client.message("K", [7, 8].pack("N2")), READY)
    end

    # Until it goes away.
    def wait = @stream.read

    def self.message(type, body) = "#{type}#{[body.bytesize + 4].pack("N")}".b << body.b
  end

  # The server's side of SCRAM.
  class Scram
    def initialize(password, iterations: 2)
      @iterations = iterations
      @salted = OpenSSL::KDF.pbkdf2_hmac(password, salt: "salt", iterations:, length: 32, hash: "SHA256")
    end

    def first(client_first)
      @bare = client_first[/n=.*/]
      @first = "r=#{@bare[/r=(.*)/, 1]}more,s=#{["salt"].pack("m0")},i=#{@iterations}"
    end

    def final(client_final)
      key = OpenSSL::HMAC.digest("SHA256", @salted, "Server Key")
      "v=#{[OpenSSL::HMAC.digest("SHA256", key, "#{@bare},#{@first},#{client_final[/(.*),p=/, 1]}")].pack("m0")}"
    end
  end

  private

  # Runs the block with what a client is to be told to come here; `script` gets each that comes.
  #
  # @param listening [Hash] as that of Ringspun.listen_tcp
  def on_server(script, **listening)
    @clients = 0
    wrong = []
    Ringspun.run do
      listening = { first_byte: nil, on_error: ->(error, _) { wrong << error }, **listening }
      server = Ringspun.listen_tcp("127.0.0.1", 0, **listening) do |stream|
        @clients += 1
        script.call(Client.new(stream))
      rescue Ringspun::TLSError, Ringspun::EndOfStreamError, SystemCallError
        nil # the client has had enough
      end
      yield({ host: "localhost", hostaddr: "127.0.0.1", port: server.port, user: "me", sslmode: "disable" })
    ensure
      server&.stop(within: 10) # when its clients are gone
      assert_empty wrong
    end
  end

  # After the client's first message.
  def after_startup = ->(client) { yield client, client.parameters }

  def session(**) = with_session(**) { |session| session }

  def assert_server(error_class, message, script, **with)
    on_server(script) do |where|
      error = assert_raises(error_class) { session(**where, **with) }
      assert_instance_of error_class, error
      assert_match(/\A(localhost:\d+: .*)?#{message}/m, error.message)
      error
    end
  end

  def assert_connects(script, **with)
    on_server(script) { |where| with_session(**where, **with) { |session| yield session if block_given? } }
  end
end
