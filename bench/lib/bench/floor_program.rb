# frozen_string_literal: true

require "open3"
require "fileutils"
require "tmpdir"

module Bench
  # A floor in C, which needs nothing but a C compiler. It is compiled when its source is newer than the program. One with a name
  # engine_something is linked with Ringspun's engine.
  class FloorProgram
    DIRECTORY = File.join(ROOT, "bench/floor")
    ENGINE = File.join(ROOT, "engine")
    SHARED = %w[measure.c measure.h ring.c ring.h].map { |name| File.join(DIRECTORY, name) }.freeze
    # The extension's own optimisation, for both sides of a comparison.
    FLAGS = %W[-std=c11 -D_GNU_SOURCE -O3 -pthread -Wall -Wextra -Werror=implicit-function-declaration
               -I#{ENGINE}/include -I#{ENGINE}/src].freeze

    def initialize(name, build_directory: Workspace.build_directory)
      @source = File.join(DIRECTORY, name)
      @engine = name.start_with?("engine_") ? Dir[File.join(ENGINE, "src/**/*.c")].sort : []
      @binary = File.join(build_directory, File.basename(name, ".c"))
    end

    # The path of the program, which is compiled if it must be. Raises Unavailable with the compiler's first error.
    def path
      compile unless fresh?
      @binary
    end

    private

    def fresh?
      used = [@source, *SHARED, *@engine, *Dir[File.join(ENGINE, "{src,include}/**/*.h")]]
      File.exist?(@binary) && used.all? { |file| File.mtime(file) <= File.mtime(@binary) }
    end

    def compile
      sources = [@source, *SHARED.grep(/\.c\z/), *@engine]
      # Under a name of its own until it is whole, for another process may be about to run it.
      fresh = "#{@binary}.#{Process.pid}.#{Thread.current.object_id}"
      Dir.mktmpdir do |folder|
        objects = sources.map.with_index do |source, index|
          File.join(folder, "#{index}.o").tap { |object| run(*FLAGS, "-c", "-o", object, source) }
        end
        run(*FLAGS, "-o", fresh, *objects)
      end
      File.rename(fresh, @binary)
    rescue Errno::ENOENT
      raise Unavailable, "no C compiler (#{compiler}) for the floor"
    end

    # An object at a time, for only such a command is known to ccache.
    def run(*arguments)
      output, status = Open3.capture2e(compiler, *arguments)
      raise Unavailable, "the floor does not compile: #{output.lines.grep(/error/).first&.chomp}" unless status.success?
    end

    def compiler = ENV.fetch("CC", "gcc")
  end
end
