# frozen_string_literal: true

require_relative "changes"
require_relative "../../runtime/test/support/seeds"

# Chooses the test files that run now, by comments that they have:
#
#   # inputs: bin, Gemfile*    only when one of these, or the file itself, has changed; where nobody knows that, as on the main
#                              branch, a quarter of these files each day
#   # rubies: one              not on a second Ruby: about scripts, or many seeds of plain Ruby
#   # rubies: all              on a second Ruby by day as well, as folders of SECOND_RUBY are
#   # in turns: jobs/lib       a third of its tests each day, all when one of these, or the file itself, has changed
#
# By night all run. What is left out is said, with the reason.
class Selection
  INPUTS = /^# inputs: (.+)$/
  IN_TURNS = /^# in turns: (.+)$/
  ONE_RUBY = /^# rubies: one$/
  ALL_RUBIES = /^# rubies: all$/

  # What a second Ruby runs by day: what rests on what CRuby does not promise, or hands to schedulers.
  SECOND_RUBY = %w[cruby scheduler scheduler_io core_ext stock strands].freeze

  # Where nobody knows what has changed, a file that names its inputs runs once in this number of days. No share within such a
  # file has a divisor in common with it, or some of that would have no day.
  DAYS = 4

  # @param path [String] of a test file, or of another one that has tests
  # @return [Array<String>] the files and folders by which it says that it, or more of it, runs
  def self.inputs_of(path)
    text = File.file?(path) ? File.read(path) : ""
    [INPUTS, IN_TURNS].flat_map { |comment| text[comment, 1].to_s.split(", ") }
  end

  # @param changes [Changes]
  # @param day [Integer] the number of the day
  # @param nightly [Boolean]
  # @param second_ruby [Boolean] another pass runs them on the first
  def initialize(changes:, day: Seeds.day, nightly: false, second_ruby: false, out: $stdout)
    @changes = changes
    @day = day
    @nightly = nightly
    @second_ruby = second_ruby
    @out = out
    @told = {}
  end

  # @param files [Array<String>]
  # @return [Array<String>]
  def of(files)
    chosen, others = files.partition { |path| reason(path).nil? }
    others.group_by { |path| reason(path) }.each { |why, paths| leave_out(listed(paths), why) }
    chosen
  end

  # @param files [Array<String>]
  # @return [Array<String>, nil] those that have changed; nil where nobody knows
  def changed(files) = @changes.among(files)

  # Says so, once.
  #
  # @param what [String] files, or a pass
  # @param why [String]
  def leave_out(what, why)
    @out.puts "left out (#{why}): #{what}" unless @told[[what, why]]
    @told[[what, why]] = true
  end

  # @param what [String] a pass that runs by night
  # @param inputs [Array<String>] files and folders; it runs by day as well when one of these has changed
  # @return [Boolean] whether it runs now
  def now?(what, inputs = [])
    return true if @nightly || @changes.among(inputs)&.any?

    leave_out(what, "runs by night#{", and after a change in #{inputs.join(", ")}" if inputs.any?}")
    false
  end

  private

  # Names many files by their folders.
  def listed(paths)
    return paths.join(" ") if paths.size <= 5

    counts = paths.map { |path| File.dirname(path).split("/").first(3).join("/") }.tally
    counts.map { |folder, count| "#{folder} (#{count})" }.join(" ")
  end

  # Why it does not run; nil: it does.
  def reason(path)
    text = File.read(path)
    return "one Ruby is enough" if @second_ruby && text.match?(ONE_RUBY)
    return if @nightly
    return "runs by night on a second Ruby" if @second_ruby && !text.match?(ALL_RUBIES) && !of_second_ruby?(path)

    inputs = text[INPUTS, 1]&.split(", ") or return
    changed = @changes.among([*inputs, path])
    return if changed.nil? ? has_its_day?(path) : changed.any?

    changed ? "nothing has changed in #{inputs.join(", ")} #{@changes.basis}" : "runs on another day, and by night"
  end

  def has_its_day?(path) = ((File.basename(path).sum + @day) % DAYS).zero?

  def of_second_ruby?(path) = SECOND_RUBY.any? { |folder| path.include?("runtime/test/#{folder}/") }
end
