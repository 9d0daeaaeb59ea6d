# frozen_string_literal: true

require "json"
require "bench/workspace"
require "bench/floor_program"
require "bench/postgres_server"

module Bench
  # The floors of the tables of Postgres: bench/floor/libpq.c, with the same library that the gem `pg` has loaded, so that the two
  # differ only by Ruby. It waits before and after its region, so that the backends' CPU time is read around the region alone.
  module LibpqProgram
    ANSWER = { 3 => %i[child out] }.freeze

    # Returns the proof.
    #
    # @param options [Hash] of the connection
    # @param server [PostgresServer] that they lead to
    def self.measure(meter, options, *arguments, server: PostgresServer.start)
      require "pg"
      conninfo = options.map { |name, value| "#{name}=#{value}" }.join(" ")
      command = [FloorProgram.new("libpq.c").path, library, conninfo, *arguments].map(&:to_s)
      IO.popen([*command, ANSWER], "r+") do |program|
        answer(program) # it has connected
        before = server.backend_seconds
        program.write("g")
        measured = answer(program)
        meter.note(:backend, server.backend_seconds - before)
        meter.take(**measured.slice(:user, :system, :real))
        meter.operations = measured[:operations]
        measured.fetch(:proof)
      end
    end

    def self.answer(program)
      line = program.gets || raise("the floor has ended early")
      JSON.parse(line, symbolize_names: true).tap { |answer| raise Unavailable, answer[:unavailable] if answer[:unavailable] }
    end

    def self.library = File.read("/proc/self/maps")[%r{/\S*/libpq[^/\s]*\.so\S*}] || "libpq.so.5"

    private_class_method :answer, :library
  end
end
