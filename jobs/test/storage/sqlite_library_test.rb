# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/program"
require_relative "../support/sqlite_case"

# rubies: one

# Which SQLite a process uses, where another one was loaded before for all to see.
class SqliteLibraryTest < SqliteCase
  include AnyBackend

  OTHER = %(const char sqlite3_version[] = "3.1.4";\nconst char *sqlite3_libversion(void) { return sqlite3_version; }\n)

  CODE = <<~'RUBY'
    verbose, $VERBOSE = $VERBOSE, nil # Ruby 3.4 warns of what follows
    require "fiddle"
    $VERBOSE = verbose
    require "ringspun/jobs"
    Fiddle::Handle.new(ARGV[0], Fiddle::RTLD_LAZY | Fiddle::RTLD_GLOBAL)
    require "extralite" if ARGV[2]
    begin
      storage = Ringspun::Jobs::Storage.for(Ringspun::Jobs::Config.new.update(storage: "sqlite:#{ARGV[1]}"))
      storage.push([Ringspun::Jobs::Storage::Push.new(queue: "a", entry: "{}")])
      puts "#{Extralite.sqlite3_version} #{storage.stats[:enqueued]}"
      storage.close
    rescue Ringspun::Jobs::ConfigError => error
      puts error.message
    end
  RUBY

  def output_of(*)
    File.write("#{folder}/other.c", OTHER)
    assert system("cc", "-shared", "-fPIC", "-o", "#{folder}/other.so", "#{folder}/other.c")
    program = Program.ruby(CODE, "#{folder}/other.so", path, *)
    assert_predicate program.wait, :success?, program.log
    program.log
  ensure
    program&.close
  end

  def test_ours_is_used_whatever_was_loaded_before
    assert_equal "#{Extralite.sqlite3_version} 1\n", output_of
  end

  # Here nothing can be done any more.
  def test_one_that_the_program_has_bound_to_an_old_library_is_refused
    assert_match(/needs SQLite 3.51.3 or later.*has loaded 3.1.4; run: bundle update/, output_of("bound"))
    refute_path_exists path
  end
end
