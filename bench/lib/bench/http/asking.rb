# frozen_string_literal: true

require "json"
require "bench/floor_program"
require "bench/http/cores"
require "bench/workspace"

module Bench
  module Http
    # The clients: bench/floor/http_load.c on a core of its own, so that what they cost is not the server's.
    class Asking
      # @param folder [String] gets the files that it reads
      # @param request [String] bytes
      # @param body [String] of each answer
      # @param options [Hash{Symbol => Integer}] as the program has them
      def initialize(folder, port, request, body, **options)
        files = { "request" => request, "body" => body }.map do |name, bytes|
          File.join(folder, name).tap { |path| File.binwrite(path, bytes) }
        end
        @log = File.join(folder, "clients")
        words = options.compact.map { |name, value| "#{name}=#{value}" }
        @io = IO.popen([*Cores.for_clients, FloorProgram.new("http_load.c").path, port.to_s, *files, *words], "r+", err: @log)
      end

      # Waits until each has been answered once.
      #
      # @raise [RuntimeError] an answer was wrong
      def ready = (line = say) == "ready\n" || raise(JSON.parse(line).fetch("fault"))

      # Asks, and waits for all answers.
      #
      # @return [Hash{Symbol => Object}]
      # @raise (see #ready)
      def run
        @io.puts
        result = JSON.parse(say, symbolize_names: true)
        result.key?(:fault) ? raise(result[:fault]) : result
      end

      def close = @io.close

      private

      def say = @io.gets || raise("the clients have ended: #{File.read(@log).lines.first}")
    end
  end
end
