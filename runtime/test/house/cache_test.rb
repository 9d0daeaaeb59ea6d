# frozen_string_literal: true

require "test_helper"
require "digest"
require "open3"
require "tmpdir"

# rubies: one
# inputs: bin/support/common.sh, bin/support/rubocop_cache.rb, Gemfile.lock

# What is kept between runs and shared among clones: with it, without it and after it was removed the same is built and found.
class CacheTest < Minitest::Test
  include AnyBackend

  COMMON = File.expand_path("../../../bin/support/common.sh", __dir__)

  # Compiles a program in a folder, with the cache of that home.
  #
  # @return [Array(String, String)] the digest of the object, and what ccache has counted
  def compile(home, folder, code, *flags)
    FileUtils.mkdir_p(folder)
    File.write(File.join(folder, "program.c"), code)
    script = 'source "$0"; cd "$1"; shift; gcc -c program.c -o program.o "$@"; ccache --print-stats 2>/dev/null || true'
    out, status = Open3.capture2({ "HOME" => home, "XDG_CACHE_HOME" => nil }, "bash", "-c", script, COMMON, folder, *flags)
    assert_predicate status, :success?
    [Digest::SHA256.file(File.join(folder, "program.o")).hexdigest, out]
  end

  def hits(stats) = stats[/^direct_cache_hit\s+(\d+)/, 1].to_i + stats[/^preprocessed_cache_hit\s+(\d+)/, 1].to_i

  def test_the_same_is_built_with_the_cache_without_it_and_after_it_was_removed
    skip "there is no ccache" unless File.directory?("/usr/lib/ccache")

    Dir.mktmpdir do |home|
      first, = compile(home, "#{home}/one", "int answer = 42;\n")
      again, stats = compile(home, "#{home}/two", "int answer = 42;\n")
      assert_equal [first, 1], [again, hits(stats)]
      other, = compile(home, "#{home}/three", "int answer = 43;\n")
      refute_equal first, other
      flagged, stats = compile(home, "#{home}/four", "int answer = 42;\n", "-g")
      assert_equal 1, hits(stats)
      refute_equal first, flagged
      assert_path_exists File.join(home, ".cache/ringspun/ccache")
      FileUtils.rm_rf(File.join(home, ".cache"))
      assert_equal [first, 0], compile(home, "#{home}/two", "int answer = 42;\n").then { |digest, counts| [digest, hits(counts)] }
    end
  end

  SHARED = File.expand_path("../../../bin/support/rubocop_cache.rb", __dir__)

  # Looks at a file in a clone, which is a folder here.
  #
  # @return [Array(Boolean, Array<String>)] whether it is right, and the names of the results that the cache has
  def look_at(clone, code, cache)
    FileUtils.mkdir_p(File.join(clone, "bin/support"))
    FileUtils.cp(SHARED, File.join(clone, "bin/support"))
    File.write(File.join(clone, ".rubocop.yml"),
               "AllCops:\n  DisabledByDefault: true\n  Exclude: [tmp/**/*]\nLint/Debugger: { Enabled: true }\n")
    File.write(File.join(clone, "program.rb"), code)
    out, status = Open3.capture2e("rubocop", "--require", "./bin/support/rubocop_cache", "--cache-root", cache, "program.rb",
                                  chdir: clone)
    refute_match(/error/i, out)
    [status.success?, Dir.glob("**/*", base: cache).select { |path| File.file?(File.join(cache, path)) }]
  end

  def test_what_rubocop_has_found_in_one_clone_another_one_finds
    Dir.mktmpdir do |folder|
      passed, first = look_at("#{folder}/one", "binding.irb\n", "#{folder}/cache")
      assert_equal [false, 1], [passed, first.size]
      assert_equal [false, first], look_at("#{folder}/two", "binding.irb\n", "#{folder}/cache")
      passed, both = look_at("#{folder}/two", "binding\n", "#{folder}/cache")
      assert_equal [true, 2], [passed, both.size]
    end
  end
end
