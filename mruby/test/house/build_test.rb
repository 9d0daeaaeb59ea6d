# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "rbconfig"

# What mrbgem.rake asks of mruby's build system, in each version that the gem supports. Only one version's source may be here, and
# a build of the gem shows nothing of the others.
class BuildTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  SOURCE = ENV.fetch("MRUBY_SRC", "#{ROOT}/tmp/mruby/source")
  VERSIONS = %w[3.3 4.0].freeze

  # Class of mruby's => method => the versions that have it, written down by hand. The last test compares the list of one version
  # with its source: that of MRUBY_SRC, which is 3.3 unless told otherwise. The list of the other is compared with nothing there.
  METHODS = {
    "MRuby::Gem::Specification" => {
      license: VERSIONS, author: VERSIONS, summary: VERSIONS, add_dependency: VERSIONS, build: VERSIONS, cc: VERSIONS,
      linker: VERSIONS, build_dir: VERSIONS, objs: VERSIONS
    },
    "MRuby::Build" => { gems: VERSIONS, exts: VERSIONS, presym_enabled?: %w[3.3] },
    "MRuby::Build::Exts" => { object: VERSIONS, presym_preprocessed: VERSIONS },
    "MRuby::Command::Compiler" => {
      flags: VERSIONS, defines: VERSIONS, include_paths: VERSIONS, define_rules: VERSIONS, clone: VERSIONS
    },
    "MRuby::Command::Linker" => { libraries: VERSIONS }
  }.freeze

  # An object of that class in that version, which notes what is called. What it has not raises a NoMethodError.
  class Recorded < BasicObject
    def initialize(type, version, called, answers)
      @type = type
      @names = METHODS.fetch(type).select { |_, versions| versions.include?(version) }.keys
      @called = called
      @answers = answers
    end

    def respond_to?(name, *) = @names.include?(name)
    def __dir__ = "#{ROOT}/mruby"
    def instance_exec(*, &) = super

    def method_missing(name, *arguments, &)
      asked = name.to_s.delete_suffix("=").to_sym
      ::Kernel.raise ::NoMethodError, "#{@type} has no #{name}" unless @names.include?(asked)

      @called[[@type, asked]] = true
      answer = @answers[asked]
      ::Proc === answer ? answer.call(*arguments, &) : answer
    end
  end

  # As the file sees mruby.
  module Sandbox
    module MRuby
      module Gem
        class Specification
          class << self
            attr_accessor :block

            def new(_name, &block)
              self.block = block
            end
          end
        end
      end
    end
  end

  VERSIONS.each do |version|
    define_method("test_mrbgem_rake_asks_nothing_that_#{version.tr(".", "_")}_lacks") do
      called = {}
      rules = run_file(version, called)
      assert_equal [".o", ".pi"], rules, "for objects, and for the scan for symbols"
      listed = METHODS.flat_map { |type, names| names.select { |_, all| all.include?(version) }.keys.map { |name| [type, name] } }
      assert_equal listed.sort, called.keys.sort
    end
  end

  def test_a_method_that_a_version_lacks_is_found
    spec = Recorded.new("MRuby::Build", "4.0", {}, {})
    refute spec.respond_to?(:presym_enabled?)
    assert_raises(NoMethodError) { spec.presym_enabled? }
  end

  # Nothing in C needs tables to unwind by, and they are a fifth of the text. C++ exceptions do, and a debugger has its own.
  def test_a_build_for_size_has_no_tables_to_unwind_by
    VERSIONS.each do |version|
      assert_includes flags_of(version, ["-Os"]), "-fno-asynchronous-unwind-tables"
      refute_includes flags_of(version, [["-g", "-Os"]], defines: ["MRB_USE_CXX_EXCEPTION"]), "-fno-asynchronous-unwind-tables"
      assert_equal ["-O2", "-std=gnu11", "-O3"], flags_of(version, ["-O2"])
    end
  end

  # And says which version that is.
  def test_the_source_that_is_here_has_what_is_listed
    version = version_of_source
    assert_includes VERSIONS, version
    puts "mruby #{(VERSIONS - [version]).join(" and ")} was not built, and its list of methods was compared with no source: " \
         "#{SOURCE} has #{version}"
    METHODS.each do |type, names|
      expected = names.select { |_, versions| versions.include?(version) }.keys
      there = methods_of_source(type)
      assert_empty expected - there, "#{type} of #{version} lacks them"
      assert_empty (names.keys - expected) & there, "#{type} of #{version} has them"
    end
  end

  private

  def flags_of(version, flags, defines: [])
    run_file(version, {}, flags: flags, defines: defines)
    flags
  end

  def run_file(version, called, flags: [], defines: [])
    block = block_of_file
    rules = []
    record = ->(type, answers) { Recorded.new(type, version, called, answers) }
    exts = record.call("MRuby::Build::Exts", object: ".o", presym_preprocessed: ".pi")
    build = record.call("MRuby::Build", gems: [], exts: exts, presym_enabled?: true)
    answers = { flags: flags, defines: defines, include_paths: [], define_rules: ->(_, _, ext) { rules << ext } }
    own = record.call("MRuby::Command::Compiler", answers)
    compiler = record.call("MRuby::Command::Compiler", { **answers, clone: own })
    linker = record.call("MRuby::Command::Linker", libraries: [])
    spec = record.call("MRuby::Gem::Specification", build: build, cc: compiler, linker: linker, build_dir: "build", objs: [],
                                                    license: nil)
    spec.instance_exec(spec, &block)
    rules
  end

  # It sees the local variables here, and there are none.
  def block_of_file
    Sandbox.module_eval(File.read("#{ROOT}/mruby/mrbgem.rake"), "#{ROOT}/mruby/mrbgem.rake")
    Sandbox::MRuby::Gem::Specification.block
  end

  def version_of_source
    header = File.read("#{SOURCE}/include/mruby/version.h")
    %w[MAJOR MINOR].map { |part| header[/^#define MRUBY_RELEASE_#{part} (\d+)/, 1] }.join(".")
  end

  def methods_of_source(type)
    program = <<~RUBY
      MRUBY_ROOT = #{SOURCE.dump}
      $:.unshift "\#{MRUBY_ROOT}/lib"
      require "mruby/core_ext"
      require "mruby/build"
      require "mruby/gem"
      names = #{type}.instance_methods
      puts names, names.grep(/=\\z/).map { |name| name.to_s.delete_suffix("=") }
    RUBY
    out, err, status = Open3.capture3(RbConfig.ruby, "-W0", "-rrake", "-e", program)
    assert_predicate status, :success?, err
    out.split.map(&:to_sym)
  end
end
