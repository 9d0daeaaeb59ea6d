# frozen_string_literal: true

require "rbconfig"
require "socket"
require "bench/computing"
require "bench/load"
require "bench/worker_process"

module Bench
  # A web server of several processes, which compute for each answer: a program in bench/lib/bench/web_servers, on a Unix socket.
  class WebServers
    PROGRAMS = File.join(ROOT, "bench/lib/bench/web_servers")
    LOAD_PATH = %w[bench/lib runtime/lib].map { |folder| "-I#{File.join(ROOT, folder)}" }.freeze
    SECONDS = 15 # less than the sampler's limit, which would hide the reason

    RESULT = Computing::RESULT.to_s
    REQUEST = "GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"

    # Yields a server whose processes have all begun.
    def self.during(meter, program, processes, backend: nil)
      server = new(meter, program, processes, backend)
      server.await(processes)
      yield server
    rescue SystemCallError, IOError => error
      raise "the server does not answer: #{error.message}; its last words: #{server&.last_words}"
    ensure
      server&.stop
    end

    def initialize(meter, program, processes, backend)
      folder = meter.scratch
      @path = File.join(folder, "socket")
      @log = File.join(folder, "log")
      @ready, writer = IO.pipe
      @pid = spawn({ "RINGSPUN_BACKEND" => backend }, *WorkerProcess::ALONE, RbConfig.ruby, *LOAD_PATH,
                   File.join(PROGRAMS, "#{program}.rb"), @path, processes.to_s, writer.fileno.to_s,
                   writer => writer, %i[out err] => @log, chdir: folder)
    ensure
      writer&.close
    end

    # Waits until so many processes have said that they begin.
    def await(processes)
      @ready.timeout = SECONDS * Load.factor
      processes -= @ready.readpartial(processes).bytesize while processes.positive?
    end

    # So many clients ask, each on a new connection each time.
    #
    # @return [Integer] right answers
    def ask(clients, requests)
      asking = Array.new(clients) do |index|
        Thread.new { Array.new((requests + index) / clients) { answer }.count(RESULT) }
      end
      asking.each { |thread| thread.report_on_exception = false }.sum(&:value)
    end

    # Ends the server; a second time nothing happens.
    def stop
      return unless @pid

      Process.kill(:TERM, @pid)
      Process.wait(@pid)
      @pid = nil
      @ready.close
    end

    def last_words = File.readlines(@log, chomp: true).last.to_s[0, 300]

    private

    def answer
      UNIXSocket.open(@path) do |socket|
        socket.write(REQUEST)
        socket.read.to_s[-RESULT.size..]
      end
    end
  end
end
