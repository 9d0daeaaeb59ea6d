# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# C libraries of the tests' own, which stand before all others in a process, or are loaded into this one.
module Preloaded
  @libraries = {}

  class << self
    # @param source [String] a C file
    # @param flags [Array<String>] of the compiler
    # @return [Hash{String => String}] environment of a process that has the library. One that is loaded before all others
    #   already, as that of a sanitizer, has to stay the first
    def env(source, *flags) = { "LD_PRELOAD" => [ENV.fetch("LD_PRELOAD", nil), library(source, *flags)].compact.join(":") }

    # Compiles it once in a process. To be called before a fork, or each child compiles its own. It is gone when the process ends
    # that has compiled it, and not when a child of that does.
    #
    # @return [String] its path
    def library(source, *flags) = @libraries[source] ||= compile(source, flags)

    private

    def compile(source, flags)
      folder = Dir.mktmpdir("ringspun-preloaded-")
      compiling = Process.pid
      at_exit { FileUtils.rm_rf(folder) if Process.pid == compiling }
      library = File.join(folder, "#{File.basename(source, ".c")}.so")
      output, status = Open3.capture2e(RbConfig::CONFIG["CC"].split.first, "-Wall", "-Werror", "-shared", "-fPIC", *flags,
                                       "-o", library, source, "-ldl")
      status.success? ? library : raise(output)
    end
  end
end
