# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/servers" # mailer_jobs.rb starts one
require "tmpdir"

# inputs: examples, engine, {runtime,postgres,http}/{ext,lib}, jobs/lib

# Every program under examples/ is run, and prints what the comment at its top says; `...` there stands for anything.
class ExamplesTest < Minitest::Test
  FOLDER = File.expand_path("../../../examples", __dir__)
  PROGRAMS = Dir[File.join(FOLDER, "*.rb")].sort.freeze

  PROGRAMS.each do |path|
    name = File.basename(path, ".rb")
    define_method("test_#{name}_prints_what_it_says") do
      promised = File.read(path)[/^# Prints.*:\n((?:#   .*\n)+)/, 1]
      refute_nil promised, "#{name}.rb does not say what it prints"

      answer = run_example(path)
      lines = promised.lines(chomp: true).map { |line| line.delete_prefix("#   ") }
      assert_equal ["", true], [answer.err, answer.status.success?]
      assert_equal lines.size, answer.out.lines.size, answer.out
      lines.zip(answer.out.lines(chomp: true)) { |line, printed| assert_match pattern(line), printed }
    end
  end

  # The programs run in processes of their own; a collection at every allocation of this one would find nothing.
  def setup = GC.stress = false

  def test_there_are_examples
    assert_operator PROGRAMS.size, :>=, 4
  end

  def test_checksums_are_those_of_the_files
    Dir.mktmpdir do |folder|
      paths = [0, 1, 300_000, 1_000_000].map do |size|
        File.join(folder, size.to_s).tap { |path| File.binwrite(path, Random.new(size).bytes(size)) }
      end
      expected = paths.map { |path| "#{Digest::SHA256.file(path).hexdigest}  #{File.basename(path)}\n" }
      answer = run_example(File.join(FOLDER, "checksums.rb"), *paths, File.join(folder, "missing"))
      assert_equal expected.join, answer.out
      assert_match(/\ANo such file or directory - .*missing\n\z/, answer.err)
    end
  end

  private

  # The gems above the runtime are the bundle's.
  def run_example(path, *arguments)
    env = File.read(path).match?(%r{^require "ringspun/(http|jobs|postgres)"}) ? { "RUBYOPT" => "-rbundler/setup" } : {}
    ruby_child("$0 = ARGV.shift; load $0", path, *arguments, env: env)
  end

  def pattern(line) = /\A#{line.split("...", -1).map { |part| Regexp.escape(part) }.join(".*")}\z/
end
