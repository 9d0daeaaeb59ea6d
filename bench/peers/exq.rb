# frozen_string_literal: true

require "json"
require "open3"

require "bench/enqueuing"

module Bench
  # Exq, a library of Elixir, as its own comparison of enqueuers has it: exq.exs beside this file, run by mix in the project that
  # RINGSPUN_EXQ names, with the private Redis of the table.
  class Exq
    PROJECT = "RINGSPUN_EXQ"
    SCRIPT = File.join(ROOT, "bench/peers/exq.exs")

    # The script ends with this when the project lacks a library, and its last line is the library's name.
    LACKS = 3

    WARM_UP_SECONDS = 1.0
    NOTES = %w[average deviation median p99].freeze
    private_constant :SCRIPT, :LACKS, :WARM_UP_SECONDS, :NOTES

    # The region is the script's own, behind its warm-up. Its CPU time is what Erlang's virtual machine took.
    # @param strategy [String] "default", "named" or "poolboy"
    # @return [Hash] the proof
    def self.measure(meter, strategy, callers:, seconds:)
      folder = project
      server = RedisServer.start
      server.empty
      answer = run(folder, server.port, strategy, callers, WARM_UP_SECONDS, seconds.to_f, Enqueuing::BYTES)
      meter.take(**answer.slice("user", "system", "real").transform_keys(&:to_sym))
      meter.operations = answer.fetch("calls")
      answer.slice(*NOTES).each { |name, value| meter.note(name, value) }
      meter.note("seconds", seconds)
      { lost: answer.fetch("calls_with_warm_up") - server.ask("LLEN", answer.fetch("list")) }.tap { server.empty }
    end

    # @return [String] the folder of the project
    # @raise [Unavailable] when there is none
    def self.project
      folder = ENV.fetch(PROJECT, nil)
      raise Unavailable, "set #{PROJECT} to a mix project that has Exq and Redix" if folder.to_s.empty?
      raise Unavailable, "#{PROJECT} names no mix project: #{folder} has no mix.exs" unless File.exist?("#{folder}/mix.exs")

      folder
    end

    # What a report says of it: library => version.
    # @return [Hash{Symbol => String}] empty without a project
    def self.versions
      folder = project
      elixir = Open3.capture2e("elixir", "--version").first
      { exq: version(folder, "exq"), redix: version(folder, "redix"), elixir: elixir[/^Elixir (\S+)/, 1],
        erlang: elixir[/OTP \d+/] }.compact
    rescue Unavailable, SystemCallError
      {}
    end

    def self.run(folder, *arguments)
      command = ["mix", "run", "--no-start", SCRIPT, *arguments.map(&:to_s)]
      out, err, status = Open3.capture3(*command, chdir: folder)
      last = out.lines.last.to_s
      raise Unavailable, "the project of #{PROJECT} has no #{last.chomp}" if status.exitstatus == LACKS
      raise "mix: #{(err.lines + out.lines).map(&:strip).reject(&:empty?).first}" unless status.success?

      JSON.parse(last)
    rescue Errno::ENOENT
      raise Unavailable, "there is no `mix` on PATH: install Elixir"
    end

    def self.version(folder, library)
      File.read("#{folder}/deps/#{library}/mix.exs")[/version:? "([^"]+)"/, 1]
    rescue SystemCallError
      nil
    end

    private_class_method :run, :version
  end
end
