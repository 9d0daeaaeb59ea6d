# frozen_string_literal: true

require "test_helper"
require "stringio"
require "tmpdir"
require_relative "../../../bin/support/selection"

# rubies: one
# inputs: bin/support

# The choice of the test files that run now.
class SelectionTest < Minitest::Test
  include AnyBackend

  Changed = Struct.new(:paths) do
    def among(patterns) = paths&.select { |path| patterns.any? { |pattern| path.start_with?(pattern) } }
    def basis = "since abc"
  end

  # @return [Array(Array<String>, String)] the names of the chosen files, and what is said of the others
  def select(files, changed: nil, **options)
    out = StringIO.new
    Dir.mktmpdir do |folder|
      paths = files.map do |name, text|
        File.join(folder, name.to_s).tap { |path| FileUtils.mkdir_p(File.dirname(path)) && File.write(path, text) }
      end
      chosen = Selection.new(changes: Changed.new(changed), out:, **options).of(paths)
      [chosen.map { |path| path.delete_prefix("#{folder}/") }, out.string.gsub("#{folder}/", "")]
    end
  end

  FILES = { "a_test.rb" => "x\n# inputs: bin, docs\n", "b_test.rb" => "# other\n" }.freeze

  def test_a_file_runs_when_its_inputs_have_changed
    assert_equal [%w[a_test.rb b_test.rb], ""], select(FILES, changed: %w[docs/1.md])
    assert_equal [%w[b_test.rb], "left out (nothing has changed in bin, docs since abc): a_test.rb\n"],
                 select(FILES, changed: %w[lib/x.rb])
  end

  def test_all_run_by_night
    [[], nil].each { |changed| assert_equal [%w[a_test.rb b_test.rb], ""], select(FILES, changed:, nightly: true) }
  end

  def test_a_quarter_run_each_day_when_nobody_knows_what_has_changed
    days = (1..8).map { |day| select(FILES, changed: nil, day:) }
    left_out = [%w[b_test.rb], "left out (runs on another day, and by night): a_test.rb\n"]
    assert_equal({ [%w[a_test.rb b_test.rb], ""] => 2, left_out => 6 }, days.tally)
    assert_equal days.first(4), days.last(4)
  end

  def test_a_second_ruby_runs_what_could_differ
    files = { "runtime/test/stock/a_test.rb" => "", "runtime/test/stock/b_test.rb" => "# rubies: one",
              "jobs/test/c_test.rb" => "", "http/test/d_test.rb" => "# rubies: all" }
    chosen, said = select(files, second_ruby: true)
    assert_equal %w[runtime/test/stock/a_test.rb http/test/d_test.rb], chosen
    assert_equal ["left out (one Ruby is enough): runtime/test/stock/b_test.rb",
                  "left out (runs by night on a second Ruby): jobs/test/c_test.rb"], said.lines(chomp: true).sort
    chosen, = select(files, second_ruby: true, nightly: true)
    assert_equal %w[runtime/test/stock/a_test.rb jobs/test/c_test.rb http/test/d_test.rb], chosen
  end

  def test_a_pass_of_the_night
    out = StringIO.new
    refute Selection.new(changes: Changed.new(%w[lib/x]), out:).now?("Rails 7", %w[jobs])
    2.times { refute Selection.new(changes: Changed.new(nil), out:).now?("epoll") }
    assert Selection.new(changes: Changed.new(%w[jobs/x]), out:).now?("Rails 7", %w[jobs])
    assert Selection.new(changes: Changed.new([]), out:, nightly: true).now?("epoll")
    assert_equal ["left out (runs by night, and after a change in jobs): Rails 7", *["left out (runs by night): epoll"] * 2],
                 out.string.lines(chomp: true)
  end

  # The folders and inputs that are named are there.
  def test_what_is_named_is_there
    root = File.expand_path("../../..", __dir__)
    Selection::SECOND_RUBY.each { |folder| assert_path_exists File.join(root, "runtime/test", folder) }
    Dir.glob(File.join(root, "{runtime,jobs,postgres,http,bench}/test/**/*_test.rb")) do |path|
      File.read(path)[Selection::INPUTS, 1]&.split(", ")&.each do |input|
        refute_empty Dir.glob(File.join(root, input), File::FNM_DOTMATCH), "#{path}: #{input}" unless path == __FILE__
      end
    end
  end
end
