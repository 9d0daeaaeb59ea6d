# frozen_string_literal: true

require "fiddle"
require_relative "../../../runtime/test/support/preloaded"

# A disk below the SQLite of this process on which a call fails, see disk_faults.c.
module DiskFaults
  KINDS = %i[once lasting full torn killed unread].freeze

  class << self
    # Once in a process, for all files that it opens from then on.
    def install
      sqlite = Fiddle::Handle.new($LOADED_FEATURES.grep(/extralite_ext\.so\z/).first)
      install = function("faults_install", [Fiddle::TYPE_VOIDP] * 2, Fiddle::TYPE_INT)
      install.call(sqlite["sqlite3_vfs_find"], sqlite["sqlite3_vfs_register"]).zero? || raise("it cannot be installed")
    end

    # @param calls [Integer] that do well before; -1: all do
    # @param kind [Symbol] of {KINDS}
    def plan(calls, kind) = function("faults_plan", [Fiddle::TYPE_LONG, Fiddle::TYPE_INT]).call(calls, KINDS.index(kind))

    def heal = plan(-1, :once)

    # @return [Integer] how many calls there were
    def count = function("faults_count", [], Fiddle::TYPE_LONG).call

    # @return [Integer] how often a file was to be on the disk
    def synced = function("faults_synced", [], Fiddle::TYPE_LONG).call

    # Lets each of these wait for a byte.
    #
    # @param pipe [IO, nil]
    def gate(pipe) = function("faults_gate", [Fiddle::TYPE_INT]).call(pipe&.fileno || -1)

    # To be called before a fork, or each child builds its own. A program that is given one by the environment builds none.
    #
    # @return [String] the library
    def build
      @build ||= ENV["DISK_FAULTS"] || begin
        headers = File.join(Gem.loaded_specs.fetch("extralite-bundle").full_gem_path, "ext/sqlite3")
        Preloaded.library(File.join(__dir__, "disk_faults.c"), "-Wextra", "-I", headers)
      end
    end

    private

    def function(name, arguments, result = Fiddle::TYPE_VOID)
      @library ||= Fiddle::Handle.new(build)
      Fiddle::Function.new(@library[name], arguments, result)
    end
  end
end
