# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/cli"
require "stringio"
require "support/sqlite_case"

# The tables of the storage, from a shell.
class StorageCommandTest < SqliteCase
  CLI = Jobs::CLI

  def answer(*words, of: storage)
    output = StringIO.new
    arguments = CLI.const_get(:Arguments).new(["storage", *words])
    [arguments.command.new(of, arguments.options, output: output).call(arguments.names), output.string]
  end

  def change(*statements) = statements.each { |statement| query("#{statement} RETURNING 1") }

  def known = storage.version.known

  def test_a_new_file_is_brought_to_this_version
    first = "version 0; this program knows #{known}: the first program that writes, or storage migrate, brings it there\n"
    assert_equal [0, first], answer("version")
    assert_equal [0, "from version 0 to #{known}\n"], answer("migrate")
    assert_equal [0, "version #{known}: there was nothing to do\n"], answer("migrate")
    assert_equal [0, "version #{known}; this program knows #{known}\n"], answer("version")
    assert_equal [0, "nothing is wrong\n"], answer("check")
  end

  def test_as_json
    answer("migrate")
    assert_equal({ "version" => known, "known" => known }, JSON.parse(answer("version", "--json").last).except("oldest"))
    assert_equal({ "before" => known, "version" => known }, JSON.parse(answer("migrate", "--json").last))
    push("a")
    change("UPDATE queues SET size = 3")
    status, text = answer("check", "--json")
    assert_equal [1, ["the queue default has 1 job and says 3; storage migrate counts anew"]], [status, JSON.parse(text)["wrong"]]
  end

  def test_one_that_is_too_new
    push("a")
    query("PRAGMA user_version = 99")
    change("UPDATE state SET oldest = 98")
    refusal = "version 99; this program knows #{known}, and needs version 98 to be known: run: bundle update ringspun-jobs\n"
    assert_equal [1, refusal], answer("version")
    assert_match(/has version 99 of the tables/, assert_raises(Jobs::StorageError) { answer("migrate") }.message)
    change("UPDATE state SET oldest = #{known}")
    assert_equal [0, "version 99; this program knows #{known}, and can use what is later\n"], answer("version")
  end

  def test_what_is_wrong
    push("a")
    change("DELETE FROM ready")
    status, text = answer("check")
    assert_equal 1, status
    assert_match(/\Ajobs in no place, .*\nthe queue default has 0 jobs and says 1; /, text)
  end

  def test_a_storage_without_tables
    memory = Storage::Memory.new
    assert_equal [[0, "this storage has no tables: there is nothing to migrate\n"]] * 2,
                 %w[version migrate].map { |word| answer(word, of: memory) }
    assert_equal [[0, "nothing is wrong\n"], [0, %({"version":null}\n)]],
                 [answer("check", of: memory), answer("version", "--json", of: memory)]
  end

  def test_words_that_make_no_sense
    { [] => "storage: say what: version, migrate, check",
      ["mend"] => "storage: there is no storage mend; there are version, migrate, check",
      %w[check all] => "storage: there is no storage check all; there are version, migrate, check" }.each do |words, message|
      assert_equal message, assert_raises(Jobs::ConfigError) { answer(*words) }.message
    end
  end

  def test_as_a_command
    output = StringIO.new
    errors = StringIO.new
    status = CLI.new(["storage", "migrate", "--storage", "sqlite:#{path}"], output: output, errors: errors).run
    assert_equal [0, "from version 0 to #{known}\n", ""], [status, output.string, errors.string]
    query("PRAGMA user_version = 99")
    change("UPDATE state SET oldest = 99")
    status = CLI.new(["storage", "check", "--storage", "sqlite:#{path}"], output: output, errors: errors).run
    assert_equal 1, status
    assert_match(/\Aringspun-jobs: .* run: bundle update ringspun-jobs, and start it anew\n\z/, errors.string)
  ensure
    Jobs.close
    Jobs.storage = nil
  end
end
