# frozen_string_literal: true

require "socket"

module Bench
  # A server for the fan-out: in a process of its own, and answering after a latency, as a service elsewhere does.
  class HttpServer
    ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"

    # Yields the port.
    def self.during(latency)
      command = [RbConfig.ruby, "-I#{File.join(ROOT, "bench/lib")}", *$LOAD_PATH.grep(/ringspun|runtime/).map { |path|
        "-I#{path}"
      },
                 "-rbench", "-rbench/http_server", "-e", "Bench::HttpServer.new(#{latency}).run"]
      IO.popen(command, "r+") do |server|
        yield Integer(server.gets || raise("the server did not start"))
      end
    end

    def initialize(latency)
      @latency = latency
    end

    # Until the other end of standard input closes.
    def run
      require "ringspun"
      Ringspun.run do |machine|
        listener = TCPServer.new("127.0.0.1", 0)
        listener.listen(1024)
        serving = machine.spin { loop { serve(machine, listener.accept) } }
        $stdout.puts listener.local_address.ip_port
        $stdout.flush
        $stdin.read
        machine.terminate(serving)
        listener.close
      end
    end

    private

    def serve(machine, connection)
      machine.spin do
        nil until connection.gets == "\r\n"
        machine.sleep(@latency)
        connection.write(ANSWER)
        connection.close
      end
    end
  end
end
