# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# rubies: one
# inputs: engine

# The engine as a C library, built and used as its README says.
class EngineLibraryTest < Minitest::Test
  include AnyBackend

  ENGINE = File.expand_path("../../../engine", __dir__)
  README = File.read(File.join(ENGINE, "README.md"))

  def test_the_program_of_its_readme_runs
    Dir.mktmpdir do |folder|
      done("make", "--silent", "-C", ENGINE, "BUILD=#{folder}", "CFLAGS=-O0")
      File.write(File.join(folder, "program.c"), README[/^```c\n(.*?)^```$/m, 1])
      compiler, *arguments = README[/^`(cc .*)`$/, 1].gsub("engine/build", folder).gsub("engine/", "#{ENGINE}/").split
      done(compiler, "-Wall", "-Wextra", "-Werror", *arguments, chdir: folder)
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      done("./a.out", chdir: folder)
      assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :>=, 0.01
    end
  end

  # So that a header can be included first.
  def test_each_header_for_bindings_stands_alone
    include_folder = File.join(ENGINE, "include")
    headers = Dir.glob("**/*.h", base: include_folder).sort
    refute_empty headers
    headers.each do |header|
      done("cc", "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Werror", "-I#{include_folder}", "-xc", "-",
           stdin_data: "#include \"#{header}\"\n")
    end
  end

  # Those of the engine are in several structs that all objects share.
  def test_every_object_of_the_extension_is_compiled_anew_when_a_header_has_changed
    extension = File.expand_path("../../ext/ringspun", __dir__)
    Dir.mktmpdir do |folder|
      done(RbConfig.ruby, File.join(extension, "extconf.rb"), chdir: folder)
      rules = done("make", "--dry-run", "--print-data-base", chdir: folder)
      needed = rules[/^binding-api\.o: (.*)$/, 1].split.filter_map { |path| File.realpath(path, folder) if path.end_with?(".h") }
      headers = Dir["#{extension}/{*.h,binding/**/*.h,engine/{include,src}/**/*.h}"].map { |path| File.realpath(path) }
      assert_operator headers.size, :>, 50
      assert_empty headers - needed
    end
  end

  private

  def done(*command, **)
    output, status = Open3.capture2e(*command, **)
    assert_predicate status, :success?, "#{command.join(" ")}\n#{output}"
    output
  end
end
