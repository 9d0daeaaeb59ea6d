# frozen_string_literal: true

require "socket"
require "bench/http/cores"
require "bench/http/family"
require "bench/load"
require "bench/worker_process"
require_relative "../../../../runtime/test/support/free_port"

module Bench
  module Http
    # A server that listens on a port of the loopback: processes of its own, on a core of their own.
    class Served
      SECONDS = 20
      private_constant :SECONDS

      attr_reader :port, :family

      # Yields one that accepts connections, and ends it.
      def self.during(folder, program)
        served = new(folder, program)
        served.await
        yield served
      rescue RuntimeError, SystemCallError, IOError => error
        raise "#{error.message}#{served&.last_words}"
      ensure
        served&.family&.kill
      end

      # @param program [#call] gets the folder and the port, and returns an environment and a command
      def initialize(folder, program)
        @log = File.join(folder, "log")
        @port = FreePort.find
        environment, *command = program.call(folder, @port)
        @family = Family.new(spawn(environment, *WorkerProcess::ALONE, *Cores.for_server, *command,
                                   %i[out err] => [@log, "a"], chdir: folder))
      end

      def await
        ends = now + SECONDS * Load.factor
        until accepts?
          raise "the server does not listen" if now > ends || ended?

          sleep 0.02
        end
      end

      def last_words
        said = File.readlines(@log, chomp: true).grep(/\S/).grep_v(/\A\s+from /).last
        said ? "; the server's last words: #{said[0, 300]}" : ""
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def accepts?
        Socket.tcp("127.0.0.1", @port).close
        true
      rescue Errno::ECONNREFUSED
        false
      end

      def ended? = !File.exist?("/proc/#{@family.pids.first}/exe")
    end
  end
end
