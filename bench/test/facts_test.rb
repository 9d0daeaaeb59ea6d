# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::FactsTest < Minitest::Test
  def test_what_the_reader_must_know_is_there
    facts = Bench::Facts.new.to_h
    %i[cpu cores kernel ruby compiler async ringspun sidekiq redis-server pg postgres vm.max_map_count].each do |name|
      refute_empty facts.fetch(name).to_s, name
    end
  end

  def test_no_path_of_this_machine_is_told
    refute_includes Bench::Facts.new.to_h.values.join(" "), Dir.home
  end

  def test_the_filesystem_of_a_path_is_known
    assert_equal "proc", Bench::Workspace.filesystem("/proc/self/fd")
    assert_equal "unknown", Bench::Workspace.filesystem("/no/such/place")
  end

  def test_tmpdir_is_respected
    kept = ENV.fetch("TMPDIR", nil)
    Dir.mktmpdir do |directory|
      ENV["TMPDIR"] = directory
      assert_equal directory, Bench::Workspace.directory
    ensure
      ENV["TMPDIR"] = kept
    end
  end
end
