# frozen_string_literal: true

require "minitest/autorun"

# The tree's own rules. Needs neither the extension nor test_helper, so that it can judge a tree that does not build.
class TidyTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  ENGINE = File.join(ROOT, "runtime/ext/ringspun/engine")
  TEXTS = %w[c h rb rake rbs sh md yml gemspec].freeze
  LINES_MAX = 600

  def self.glob(pattern) = Dir.glob(File.join(ROOT, pattern)).sort

  ALL = (glob("{.ci,bench,bin,docs,examples,jobs,mruby,postgres,rakelib,runtime}/**/*.{#{TEXTS.join(",")}}") +
         glob("{bin/*,.ci/*,*.md,Gemfile,Rakefile}")).select { |path| File.file?(path) }.freeze

  def test_there_is_something_to_judge
    refute_empty glob("runtime/ext/ringspun/engine/*.h")
    refute_empty glob("runtime/lib/**/*.rb")
  end

  def test_the_engine_includes_nothing_but_itself_and_the_system
    offences = each_include("runtime/ext/ringspun/engine/*.{c,h}") do |path, form, header|
      next "the engine knows no Ruby" if header.match?(%r{\bruby\b|binding/})

      "does not resolve inside engine/" if form == '"' && !inside_engine?(path, header)
    end
    assert_empty offences
  end

  def test_the_engines_tests_know_no_ruby
    assert_empty(each_include("runtime/test/engine/*.{c,h}") do |_path, _form, header|
      "the engine's tests know no Ruby" if header.match?(%r{\bruby\b|binding/})
    end)
  end

  def test_every_header_of_the_engine_starts_with_its_comment
    silent = glob("runtime/ext/ringspun/engine/*.h").reject { |path| File.read(path).match?(%r{\A\s*/[*/]}) }
    assert_empty names(silent), "a header's first comment says who owns what and from which thread it may be called"
  end

  def test_the_runtime_does_not_know_the_gems_above_it
    assert_empty offending_lines(glob("runtime/{lib,ext,sig}/**/*.{rb,rbs,c,h}"),
                                 %r{ringspun[/-](postgres|jobs)|Ringspun::(Postgres|Jobs)\b})
  end

  # On Ruby 3.3 two files of that name in the load path break a later `require "fiber"`.
  def test_no_file_has_the_name_of_a_library_of_rubys
    assert_empty glob("*/lib/**/fiber.rb")
  end

  def test_files_are_short
    long = ALL.select { |path| File.foreach(path).count > LINES_MAX }
    assert_empty names(long), "longer than #{LINES_MAX} lines"
  end

  def test_no_tab_and_no_blank_at_a_line_end
    assert_empty offending_lines(ALL, /\t|[ \t]+$/)
  end

  def test_nothing_is_put_off_in_a_comment
    # In two pieces, for this file is judged as well.
    assert_empty offending_lines(ALL, /\b(#{%w[TO DO].join}|#{%w[FIX ME].join})\b/)
  end

  private

  def glob(pattern) = self.class.glob(pattern)
  def names(paths) = paths.map { |path| path.delete_prefix("#{ROOT}/") }

  def inside_engine?(path, header)
    [File.dirname(path), File.dirname(ENGINE)].any? do |folder|
      target = File.expand_path(header, folder)
      target.start_with?("#{ENGINE}/") && File.exist?(target)
    end
  end

  # Yields every #include and gathers what the block objects to.
  def each_include(pattern)
    glob(pattern).flat_map do |path|
      File.read(path).scan(/^\s*#\s*include\s+(["<])([^">]+)/).filter_map do |form, header|
        objection = yield(path, form, header)
        "#{names([path]).first}: #{header}: #{objection}" if objection
      end
    end
  end

  def offending_lines(paths, pattern)
    paths.flat_map do |path|
      File.foreach(path).with_index(1).filter_map do |line, number|
        "#{names([path]).first}:#{number}: #{line.strip}" if line.chomp.match?(pattern)
      end
    end
  end
end
