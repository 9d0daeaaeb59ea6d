# frozen_string_literal: true

require "open3"
require "fileutils"

module Bench
  # A floor in C: compiled when its source is newer than the program, with nothing but a C compiler.
  class FloorProgram
    DIRECTORY = File.join(ROOT, "bench/floor")
    SHARED = %w[measure.c measure.h].map { |name| File.join(DIRECTORY, name) }.freeze

    def initialize(name, build_directory: Workspace.build_directory)
      @source = File.join(DIRECTORY, name)
      @binary = File.join(build_directory, File.basename(name, ".c"))
    end

    # Path of the program, compiled if it must be. Raises Unavailable with the compiler's first complaint.
    def path
      compile unless fresh?
      @binary
    end

    private

    def fresh?
      File.exist?(@binary) && [@source, *SHARED].all? { |file| File.mtime(file) <= File.mtime(@binary) }
    end

    def compile
      sources = [@source, *SHARED.grep(/\.c\z/)]
      output, status = Open3.capture2e(compiler, "-std=c11", "-O2", "-Wall", "-Wextra", "-o", @binary, *sources)
      raise Unavailable, "the floor does not compile: #{output.lines.grep(/error/).first&.chomp}" unless status.success?
    rescue Errno::ENOENT
      raise Unavailable, "no C compiler (#{compiler}) for the floor"
    end

    def compiler = ENV.fetch("CC", "gcc")
  end
end
