# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# C libraries of the tests' own that stand before all others in a process.
module Preloaded
  @libraries = {}

  # @param source [String] a C file, which is compiled once
  # @param flags [Array<String>]
  # @return [Hash{String => String}] environment of a process that has the library. One that is loaded before all others already,
  #   as that of a sanitizer, has to stay the first
  def self.env(source, *flags)
    library = @libraries[source] ||= compile(source, flags)
    { "LD_PRELOAD" => [ENV.fetch("LD_PRELOAD", nil), library].compact.join(":") }
  end

  def self.compile(source, flags)
    folder = Dir.mktmpdir
    Minitest.after_run { FileUtils.rm_rf(folder) }
    library = File.join(folder, "#{File.basename(source, ".c")}.so")
    compiler = RbConfig::CONFIG["CC"].split.first
    output, status = Open3.capture2e(compiler, "-Wall", "-Werror", "-shared", "-fPIC", *flags, "-o", library, source, "-ldl")
    raise output unless status.success?

    library
  end
  private_class_method :compile
end
