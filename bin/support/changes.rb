# frozen_string_literal: true

require "open3"

# The files that differ from what the main branch had where this work left it, by git: committed or not. RINGSPUN_BASE names
# another state to compare with. There may be none to compare with, without git or on the main branch itself; then all counts as
# changed.
class Changes
  BRANCHES = %w[origin/HEAD origin/main origin/master main master].freeze

  # @return [String] in words, what was compared, or why nothing could be
  attr_reader :basis

  # @param root [String] of the work tree
  def initialize(root, env: ENV)
    @root = root
    named = env["RINGSPUN_BASE"].to_s
    base = named.empty? ? fork_point : git("rev-parse", "--verify", "--quiet", "#{named}^{commit}")
    raise ArgumentError, "RINGSPUN_BASE=#{named} is no commit here; name one, or unset it" if base.nil? && !named.empty?

    @paths = paths_since(base) if base
    @basis = @paths ? "since #{base[0, 10]}" : "nothing to compare with"
  end

  # @param patterns [Array<String>] files and folders, as File.fnmatch takes them
  # @return [Array<String>, nil] the changed files that match; nil: all may have changed
  def among(patterns)
    @paths&.select { |path| patterns.any? { |pattern| within?(pattern, path) } }
  end

  private

  FLAGS = File::FNM_PATHNAME | File::FNM_EXTGLOB | File::FNM_DOTMATCH
  private_constant :FLAGS

  # Whether it is such a file, or in such a folder.
  def within?(pattern, path) = [pattern, "#{pattern}/**/*"].any? { |each| File.fnmatch?(each, path, FLAGS) }

  # Where this work left the main branch. On that branch itself it is none.
  def fork_point
    head = git("rev-parse", "--verify", "--quiet", "HEAD") or return
    branch = BRANCHES.find { |name| git("rev-parse", "--verify", "--quiet", "#{name}^{commit}") } or return
    base = git("merge-base", "HEAD", branch)
    base unless base == head && git("status", "--porcelain").to_s.empty?
  end

  def paths_since(base)
    changed = git("diff", "--name-only", "-z", "--no-renames", base)
    others = git("ls-files", "--others", "--exclude-standard", "-z")
    (changed.split("\0") + others.split("\0")).uniq if changed && others
  end

  # @return [String, nil] what it prints; nil when it fails
  def git(*arguments)
    out, _, status = Open3.capture3("git", "-C", @root, *arguments)
    out.chomp if status.success?
  rescue Errno::ENOENT
    nil
  end
end
