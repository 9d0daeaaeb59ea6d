# frozen_string_literal: true

# A port forwarder: what comes to one port goes on to another host and port, and what that answers goes back. The kernel moves the
# bytes, and they never come into this program.
#
#   bin/bundle exec ruby examples/port_forwarder.rb                           # forwards to a server of its own, once
#   bin/bundle exec ruby examples/port_forwarder.rb 8080 example.org 80      # forwards until Ctrl-C
#
# Prints:
#   the client got back 1000000 bytes, the same that it sent: true
#   0 bytes of them came into the forwarder

require "ringspun"

# One connection in, one out, and a strand for each direction. Either side may end its half first.
class Forwarder
  def initialize(host, port)
    @host = host
    @port = port
  end

  def attend(client)
    Ringspun.connect_tcp(@host, @port) do |target|
      Ringspun.scope do |scope|
        scope.spin { pass_on(client, target) }
        scope.spin { pass_on(target, client) }
      end
    end
  end

  private

  def pass_on(from, to)
    from.copy_to(to)
    to.close_write
  end
end

# A client speaks through the forwarder to a server that sends everything back.
def demonstrate(machine)
  echo = Ringspun.listen_tcp("127.0.0.1", 0) { |stream| stream.each_chunk { |bytes| stream.write(bytes) } }
  forwarder = Forwarder.new("127.0.0.1", echo.port)
  server = Ringspun.listen_tcp("127.0.0.1", 0, first_byte: nil) { |stream| forwarder.attend(stream) }
  bytes = Random.bytes(1_000_000)
  answer = Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
    machine.spin { stream.write(bytes) && stream.close_write }
    stream.read
  end
  server.stop
  echo.stop
  puts "the client got back #{answer.bytesize} bytes, the same that it sent: #{answer == bytes}"
  # Every byte goes into a pipe and out of it, in either direction.
  puts "#{bytes.bytesize * 2 - machine.metrics[:bytes_spliced] / 2} bytes of them came into the forwarder"
end

Ringspun.run do |machine|
  next demonstrate(machine) if ARGV.empty?

  port, host, target = ARGV
  forwarder = Forwarder.new(host, Integer(target))
  server = Ringspun.listen_tcp("127.0.0.1", Integer(port), first_byte: nil, max_connections: 1000) do |stream|
    forwarder.attend(stream)
  end
  puts "forwarding port #{server.port} to #{host}:#{target}; end with Ctrl-C"
  server.wait
end
