# frozen_string_literal: true

# The programs that all servers of the bench run, for Rack and without any library. BENCH_WORK names the one.
module BenchApp
  HELLO = "Hello, world!\n"
  SECONDS = 0.1 # for which one sleeps, and between two events
  EVENT = "data: #{"e" * 54}\r\n\r\n".freeze
  POSTED = 1 << 20
  FILE_BYTES = 10 << 20
  PIECE_BYTES = 65_536

  # A body from a file, which a server may send by itself.
  FileBody = Struct.new(:path) do
    alias_method :to_path, :path
    def each
      File.open(path, "rb") do |file|
        while (piece = file.read(PIECE_BYTES))
          yield piece
        end
      end
    end
  end

  class << self
    def hello = ->(_env) { [200, { "content-type" => "text/plain" }, [HELLO]] }

    def sleep
      lambda do |_env|
        Kernel.sleep(SECONDS)
        [200, { "content-type" => "text/plain" }, [HELLO]]
      end
    end

    # A streaming body, as Rack has it.
    def events
      body = lambda do |stream|
        loop do
          Kernel.sleep(SECONDS)
          stream.write(EVENT)
        end
      ensure
        stream.close
      end
      ->(_env) { [200, { "content-type" => "text/event-stream" }, body] }
    end

    def post
      lambda do |env|
        bytes = 0
        while (piece = env["rack.input"].read(PIECE_BYTES))
          bytes += piece.bytesize
        end
        [200, { "content-type" => "text/plain" }, [bytes.to_s]]
      end
    end

    def file
      path = ENV.fetch("BENCH_FILE")
      headers = { "content-type" => "application/octet-stream", "content-length" => FILE_BYTES.to_s }
      ->(_env) { [200, headers.dup, FileBody.new(path)] }
    end

    def file_bytes = Array.new(FILE_BYTES / 64) { |line| format("%063d\n", line) }.join

    # @return [#call] the one that is asked for
    def asked = public_send(ENV.fetch("BENCH_WORK"))
  end
end
