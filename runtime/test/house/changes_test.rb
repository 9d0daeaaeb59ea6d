# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "../../../bin/support/changes"

# rubies: one
# inputs: bin/support/changes.rb

# What has changed, in repositories of git that are made for it.
class ChangesTest < Minitest::Test
  include AnyBackend

  def setup
    super
    @root = Dir.mktmpdir
    git("init", "--quiet", "--initial-branch=main")
    write("kept", "a/moved", "a/edited")
    commit
  end

  def teardown
    FileUtils.rm_rf(@root)
    super
  end

  def git(*arguments) = assert(system("git", "-C", @root, "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments))

  def write(*paths)
    paths.each do |path|
      FileUtils.mkdir_p(File.dirname(File.join(@root, path)))
      File.write(File.join(@root, path), "#{path} #{rand}")
    end
  end

  def commit
    git("add", "--all")
    git("commit", "--quiet", "--message=x")
  end

  def changed(*patterns, **env) = Changes.new(@root, env: env.transform_keys(&:to_s)).among(patterns)

  def test_on_a_branch_it_is_what_the_branch_has_done
    git("checkout", "--quiet", "-b", "topic")
    write("a/edited", "b/new")
    git("mv", "a/moved", "b/moved")
    commit
    write("untracked")
    assert_equal %w[a/edited a/moved b/moved b/new untracked], changed("*", "a", "b").sort
    assert_equal %w[a/edited a/moved], changed("a").sort
    assert_equal %w[b/new], changed("b/n*")
    assert_empty changed("c", "ke")
  end

  def test_folders_may_be_named_by_a_pattern
    git("checkout", "--quiet", "-b", "topic")
    write("a/lib/x.rb", "a/ext/deep/.y", "b/lib/deep/z.rb", "b/library")
    commit
    assert_equal %w[a/lib/x.rb b/lib/deep/z.rb], changed("*/lib").sort
    assert_equal %w[a/ext/deep/.y a/lib/x.rb], changed("{a,c}/{ext,lib}").sort
  end

  def test_what_main_did_meanwhile_does_not_count
    git("checkout", "--quiet", "-b", "topic")
    write("mine")
    commit
    git("checkout", "--quiet", "main")
    write("theirs")
    commit
    git("checkout", "--quiet", "topic")
    assert_equal %w[mine], changed("*")
  end

  def test_on_main_itself_only_what_is_not_committed_can_be_told
    assert_nil changed("*")
    write("kept")
    assert_equal %w[kept], changed("*")
  end

  def test_another_base
    write("later")
    commit
    assert_equal %w[later], changed("*", RINGSPUN_BASE: "HEAD~1")
    error = assert_raises(ArgumentError) { changed("*", RINGSPUN_BASE: "nowhere") }
    assert_match(/RINGSPUN_BASE=nowhere is no commit here/, error.message)
  end

  def test_without_git_all_may_have_changed
    FileUtils.rm_rf(File.join(@root, ".git"))
    assert_nil changed("*")
    assert_equal "nothing to compare with", Changes.new(@root, env: {}).basis
  end

  def test_a_path_with_a_blank_or_an_umlaut
    git("checkout", "--quiet", "-b", "topic")
    write("a/with blank", "a/Ümlaut")
    commit
    assert_equal ["a/with blank", "a/Ümlaut"].sort, changed("a").map { |path| path.dup.force_encoding("UTF-8") }.sort
  end
end
