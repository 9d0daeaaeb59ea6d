# frozen_string_literal: true

require "rbconfig"
require "socket"
require "bench/computing"
require "bench/worker_process"

module Bench
  # A web server of several processes, which compute for each answer: a program in bench/web_servers, on a Unix socket.
  class WebServers
    PROGRAMS = File.join(ROOT, "bench/lib/bench/web_servers")
    LOAD_PATH = %w[bench/lib runtime/lib].map { |folder| "-I#{File.join(ROOT, folder)}" }.freeze
    SECONDS = 30

    RESULT = Computing::RESULT.to_s
    REQUEST = "GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"

    # Yields a server whose processes are all ready.
    def self.during(meter, program, processes, backend: nil)
      server = new(meter, program, processes, backend)
      server.await(processes)
      yield server
    ensure
      server&.stop
    end

    def initialize(meter, program, processes, backend)
      @path = File.join(meter.scratch, "socket")
      @log = File.join(meter.scratch, "log")
      @ready, writer = IO.pipe
      @pid = spawn({ "RINGSPUN_BACKEND" => backend }, *WorkerProcess::ALONE, RbConfig.ruby, *LOAD_PATH,
                   File.join(PROGRAMS, "#{program}.rb"), @path, processes.to_s, writer.fileno.to_s,
                   writer => writer, %i[out err] => @log)
      writer.close
    end

    # Waits until so many processes have said that they are ready.
    def await(processes)
      @ready.timeout = SECONDS
      @ready.readpartial(processes).bytesize.then { |count| processes -= count } while processes.positive?
    rescue EOFError, IO::TimeoutError
      raise "the server does not start: #{File.readlines(@log, chomp: true).last.to_s[0, 300]}"
    end

    # So many clients ask, each on a new connection each time.
    #
    # @return [Integer] right answers
    def ask(clients, requests)
      Array.new(clients) { |index| Thread.new { Array.new((requests + index) / clients) { answer }.count(RESULT) } }.sum(&:value)
    end

    def stop
      Process.kill(:TERM, @pid)
      Process.wait(@pid)
      @ready.close
    end

    private

    def answer
      UNIXSocket.open(@path) do |socket|
        socket.write(REQUEST)
        socket.read[-9..]
      end
    end
  end
end
