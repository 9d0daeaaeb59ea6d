# frozen_string_literal: true

# An echo server on a Unix socket, and many clients that talk to it at once.
#
#   bin/bundle exec ruby examples/echo_server.rb [CLIENTS]
#
# Prints:
#   200 clients sent 2000 messages and got 2000 back
#   0 connections are left

require "ringspun"
require "socket"
require "tmpdir"

CLIENTS = Integer(ARGV.fetch(0, 200))
MESSAGES = 10

# Answers every connection in a strand of its own. All of them belong to one scope, so when the server is cancelled, they are.
class EchoServer
  attr_reader :connections

  def initialize(machine, path)
    @machine = machine
    @path = path
    @connections = 0
  end

  def listen
    @listener = @machine.socket(:UNIX, :STREAM)
    @machine.bind(@listener, Socket.sockaddr_un(@path))
    @machine.listen(@listener)
  end

  def serve
    @machine.scope do |scope|
      @machine.accept_each(@listener) { |connection| scope.spin { echo(connection) } }
    end
  ensure
    @machine.close(@listener)
  end

  private

  def echo(connection)
    @connections += 1
    buffer = +""
    @machine.send(connection, buffer) while @machine.recv(connection, buffer) > 0
  ensure
    @machine.close(connection)
    @connections -= 1
  end
end

# A stream has no messages, only bytes: read until the whole answer is there.
def receive(machine, socket, length)
  answer = +""
  until answer.bytesize == length
    return answer if machine.read(socket, answer, length - answer.bytesize, answer.bytesize).zero?
  end
  answer
end

def talk(machine, path, name)
  socket = machine.socket(:UNIX, :STREAM)
  machine.connect(socket, Socket.sockaddr_un(path))
  MESSAGES.times.count do |number|
    message = "message #{number} of client #{name}"
    machine.send(socket, message)
    receive(machine, socket, message.bytesize) == message
  end
ensure
  machine.close(socket)
end

Dir.mktmpdir do |folder|
  path = File.join(folder, "socket")
  Ringspun.run do |machine|
    server = EchoServer.new(machine, path)
    server.listen
    serving = machine.spin { server.serve }
    clients = CLIENTS.times.map { |name| machine.spin { talk(machine, path, name) } }
    echoed = machine.timeout(30) { machine.await(*clients).sum }
    puts "#{CLIENTS} clients sent #{CLIENTS * MESSAGES} messages and got #{echoed} back"

    machine.terminate(serving)
    begin
      serving.join
    rescue Ringspun::TerminatedError
      puts "#{server.connections} connections are left"
    end
  end
end
