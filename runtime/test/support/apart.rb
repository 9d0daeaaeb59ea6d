# frozen_string_literal: true

# Files of tests that give Kernel and IO more methods. Each is run in a process of its own, as a whole: in this one, the other
# tests would have a private `wait` in every object, and would not notice what relies on it by accident. Such a file is run
# alone, to see more of it, by its name: `bin/test runtime/test/core_ext/closing.rb`.
module Apart
  def self.included(test_class)
    folder = File.expand_path("../#{test_class::FOLDER}", __dir__)
    files = Dir[File.join(folder, "*.rb")].sort.reject { |path| path.end_with?("_case.rb") }
    raise ArgumentError, "no test under #{folder}" if files.empty?

    files.each do |path|
      test_class.define_method("test_#{File.basename(path, ".rb")}") { run_apart(path) }
    end
  end

  # The tests run in processes of their own; a collection at every allocation of this one would find nothing.
  def setup = GC.stress = false

  private

  def run_apart(path)
    environment = { "RUBYOPT" => "-rbundler/setup", "RINGSPUN_GC_STRESS" => nil }
    answer = ruby_child("load ARGV.shift", path, env: environment, timeout: 80)
    assert_predicate answer.status, :success?, "#{answer.out}#{answer.err}"
    assert_match(/ [1-9]\d* assertions, 0 failures, 0 errors, 0 skips/, answer.out)
    assert_empty answer.err
  end
end
