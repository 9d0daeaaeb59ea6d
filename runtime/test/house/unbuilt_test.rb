# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

# `require "ringspun"` where nobody has built the extension, or not for this Ruby.
class UnbuiltTest < Minitest::Test
  include AnyBackend

  LIB = File.expand_path("../../lib", __dir__)
  EXT = File.expand_path("../../ext/ringspun", __dir__)
  PROGRAM = <<~RUBY
    begin
      require "ringspun"
    rescue LoadError => error
      puts error.class, error.message
    end
  RUBY

  def setup
    @root = File.realpath(Dir.mktmpdir)
    @lib = File.join(@root, "runtime/lib")
    FileUtils.mkdir_p(File.join(@lib, "ringspun"))
    FileUtils.cp(File.join(LIB, "ringspun.rb"), @lib)
    FileUtils.cp_r(Dir[File.join(LIB, "ringspun/*.rb")], File.join(@lib, "ringspun"))
  end

  def teardown
    FileUtils.remove_entry(@root)
    super
  end

  def test_a_clone_says_how_it_is_built
    FileUtils.mkdir_p(File.join(@root, "bin"))
    FileUtils.touch(File.join(@root, "bin/setup"))
    assert_equal <<~TEXT, told
      LoadError
      #{missing}
      Build it by `RINGSPUN_RUBY=#{RbConfig.ruby} #{@root}/bin/setup`.
      Bundler builds it when a Gemfile has this gem by `git:`; by `path:` it does not.
    TEXT
  end

  def test_an_installed_gem_says_how_it_is_built
    assert_equal <<~TEXT, told
      LoadError
      #{missing}
      Build it by `gem pristine ringspun`, with the `gem` of that Ruby.
    TEXT
  end

  # Without one of its rooms a library would be made that nobody can load.
  def test_a_folder_without_sources_is_not_built
    FileUtils.mkdir_p(source = File.join(@root, "ext"))
    FileUtils.cp_r(Dir[File.join(EXT, "{*.rb,*.h,binding}")], source)
    FileUtils.cp_r(File.realpath(File.join(EXT, "engine")), source)
    FileUtils.rm(Dir[File.join(source, "{engine/src/kernel,binding/sync}/*.c")])
    output, status = Open3.capture2e(RbConfig.ruby, File.join(source, "extconf.rb"), chdir: @root)
    refute_predicate status, :success?
    assert_includes output.lines, "ringspun: no C source in engine/src/kernel, binding/sync of #{source}\n"
    refute_path_exists File.join(@root, "Makefile")
  end

  # That of another Ruby does not count.
  def test_it_looks_for_the_one_of_this_ruby
    FileUtils.mkdir_p(File.join(@lib, "ringspun/2.7"))
    FileUtils.touch(File.join(@lib, "ringspun/2.7/native.so"))
    assert_includes told, missing
  end

  def test_one_that_cannot_be_loaded_says_why_itself
    FileUtils.touch(File.join(@lib, "ringspun/native.so"))
    message = told
    assert_match(%r{\ALoadError\n#{@lib}/ringspun/native.so: file too short}, message)
    refute_match(/not built/, message)
  end

  private

  def missing
    "The C extension of ringspun is not built for ruby #{RUBY_VERSION}: there is no " \
      "#{@lib}/ringspun/#{RUBY_VERSION[/\d+\.\d+/]}/native.so, and no ringspun/native in the load path."
  end

  # Without the folder of this tree, in which it is built and from which a forked one has loaded it.
  def told
    answer = ruby_child("$LOAD_PATH.replace([ARGV.shift, *$LOAD_PATH - [ARGV.shift]])\n#{PROGRAM}", @lib, LIB, fresh: true)
    assert_equal ["", true], [answer.err, answer.status.success?]
    answer.out
  end
end
