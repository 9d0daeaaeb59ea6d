# frozen_string_literal: true

require "minitest/autorun"
require_relative "houses"

# The tree's own rules. Needs neither the extension nor test_helper, so that it can judge a tree that does not build.
class TidyTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  EXTENSION = File.join(ROOT, "runtime/ext/ringspun")
  ENGINE = File.join(ROOT, "engine")
  DOOR = File.join(ENGINE, "include/ringspun/engine.h")
  ENGINES = "engine/{include,src}/**/*"
  TEXTS = %w[c h rb rake rbs sh md yml gemspec].freeze
  # A hint to look for a second idea in a file, never a reason to split one.
  LINES_MANY = 600

  def self.glob(pattern) = Dir.glob(File.join(ROOT, pattern)).sort

  ALL = (glob("{.ci,bench,bin,docs,engine,examples,http,jobs,mruby,postgres,rakelib,runtime}/**/*.{#{TEXTS.join(",")}}") +
         glob("{bin/*,.ci/*,*.md,Gemfile,Rakefile}")).select { |path| File.file?(path) }.freeze

  def test_there_is_something_to_judge
    refute_empty glob("#{ENGINES}.h")
    refute_empty glob("runtime/lib/**/*.rb")
  end

  def test_the_engine_includes_nothing_but_itself_and_the_system
    offences = each_include("#{ENGINES}.{c,h}") do |path, form, header|
      next "the engine knows no Ruby" if header.match?(%r{\bruby\b|binding/})

      "does not resolve inside engine/" if form == '"' && !inside_engine?(path, header)
    end
    assert_empty offences
  end

  # What a driver may see comes with that header.
  def test_both_bindings_include_of_the_engine_its_own_header_alone
    assert_empty(%w[runtime/ext/ringspun/binding mruby/src].flat_map do |folder|
      each_include("#{folder}/**/*.{c,h}") { |path, _, header| past_the_door(path, header) }.to_a
    end)
  end

  def test_an_include_past_the_engines_own_header_is_found_however_it_is_named
    path = File.join(EXTENSION, "binding/sync/a.c")
    past = %w[ringspun/core/link.h kernel/op_table.h engine/src/kernel/op_table.h ../../engine/include/ringspun/core/base.h]
    others = %w[ringspun/engine.h engine/include/ringspun/engine.h binding/core/core.h sync.h ringspun.h errno.h]
    assert_equal past, (past + others).select { |header| past_the_door(path, header) }
  end

  # Each room knows only those before it, by what it includes and by what it calls.
  ROOMS = { "engine" => %w[core ops flow procs kernel backend engine],
            "binding" => %w[cruby core/machine core/strand core/scope core/seeing core io stream sync procs scheduler] }.freeze

  def test_every_file_of_a_room_knows_only_the_rooms_before_it
    assert_empty(ROOMS.flat_map { |house, rooms| found_above(house, rooms).to_a })
  end

  # They have the names of the other binding's.
  def test_every_file_of_the_binding_for_mruby_knows_only_the_rooms_before_it_by_their_headers
    rooms = Rooms.new("src", %w[core io sync procs gem], texts_in("mruby/src"))
    assert_empty rooms.strangers, "no room has it"
    assert_empty rooms.above
    assert_empty rooms.inner_headers
  end

  # A room is known by the header of its name; its others are its own.
  def test_every_file_of_the_binding_includes_of_another_room_just_its_one_header
    assert_empty Rooms.new("binding", ROOMS["binding"], texts_of("binding")).inner_headers
  end

  def test_an_include_of_a_header_that_is_another_rooms_own_is_found_however_it_is_named
    texts = { "core/core.h" => "#include \"part.h\"", "core/part.h" => "#include \"binding/binding.h\"", "binding.h" => "",
              "io/a.c" => "#include \"binding/core/core.h\"\n#include \"engine/core/part.h\"\n#include <core/part.h>",
              "io/b.c" => "#include \"binding/core/part.h\"", "io/c.h" => "# include \"../core/part.h\"",
              "native.c" => "#include \"core/part.h\"" }
    expected = %w[io/b.c io/c.h native.c].to_h { |path| [path, %w[core/part.h]] }
    assert_equal expected, Rooms.new("binding", ROOMS["binding"], texts).inner_headers
  end

  # The rooms in a room share the inner.h of each, and what is outside of them knows none of that.
  def test_an_include_of_what_rooms_in_a_room_share_is_found_from_outside
    texts = { "core/core.h" => "#include \"scope/scope.h\"", "core/strand/a.h" => "#include \"binding/binding.h\"",
              "core/open.c" => "#include \"scope/inner.h\"\n#include \"strand/a.h\"",
              "core/scope/b.c" => "#include \"../strand/inner.h\"\n#include \"../strand/strand.h\"\n#include \"../strand/a.h\"",
              "io/c.c" => "#include \"binding/core/scope/scope.h\"\n#include \"binding/core/scope/inner.h\"" }
    expected = { "core/open.c" => %w[core/strand/a.h], "core/scope/b.c" => %w[core/strand/a.h],
                 "io/c.c" => %w[core/scope/inner.h core/scope/scope.h] }
    assert_equal expected, Rooms.new("binding", ROOMS["binding"], texts).inner_headers
  end

  def test_a_call_and_an_include_from_a_room_in_a_room_to_a_later_one_are_found
    texts = { "core/machine/a.c" => "#include \"binding/core/core.h\"\nint rsb_low(void) { return rsb_high(1); }",
              "core/strand/b.c" => "#include \"../machine/inner.h\"\nint rsb_high(int x) { return rsb_low() + rsb_all(); }",
              "core/other/c.c" => "", "core/core.h" => "", "core/open.c" => "int rsb_all(void) { return rsb_low(); }" }
    rooms = Rooms.new("binding", ROOMS["binding"], texts)
    assert_equal({ "core/machine/a.c" => %w[core/core.h rsb_high], "core/strand/b.c" => %w[rsb_all] }, rooms.above)
    assert_equal %w[core/other/c.c], rooms.strangers
  end

  def test_a_call_and_an_include_that_run_up_are_found
    texts = { "core/a.h" => "int rs_low(void);", "core/a.c" => "#include \"flow/b.h\"\nint rs_low(void) { return rs_high(1); }",
              "flow/b.c" => "/* rs_c() */\nint rs_high(int x) {\n    return x;\n}\nstatic int own(void) { return rs_low(); }",
              "backend/c.c" => "VALUE rs_b, rs_c;\nextern VALUE rs_high;" }
    assert_above({ "core/a.c" => %w[flow/b.h rs_high] }, texts)
  end

  def test_an_include_that_runs_up_is_found_however_the_header_is_named
    texts = { "core/by_dots.h" => "#include \"../flow/b.h\"", "core/beside.h" => "# include \"sub/../../flow/b.h\"",
              "core/by_house.c" => "#include \"engine/flow/b.h\"", "core/own.c" => "#include \"flow.h\"", "core/flow.h" => "",
              "flow/b.h" => "#include \"../core/own.h\"" }
    assert_above(%w[core/by_dots.h core/beside.h core/by_house.c].to_h { |path| [path, %w[flow/b.h]] }, texts)
  end

  def test_what_the_engine_s_own_header_says_is_for_none_of_its_rooms
    texts = { "engine.h" => "int rs_all(void);",
              "engine.c" => "#include \"core/a.h\"\nint rs_all(void) {\n    return rs_low();\n}",
              "core/a.h" => "#include \"engine.h\"", "core/a.c" => "#include <stdio.h>\nint rs_low(void) { return rs_all(); }" }
    assert_above({ "core/a.h" => %w[engine.h], "core/a.c" => %w[rs_all] }, texts)
  end

  def test_an_inline_function_that_runs_up_is_found_and_is_one_to_run_up_to
    texts = { "core/a.h" => "static inline int rs_low(void) {\n    return rs_high();\n}",
              "core/a.c" => "int rs_lower(void) { return rs_inline(); }",
              "flow/b.c" => "int rs_high(void) { return rs_low(); }",
              "flow/b.h" => "static inline int rs_inline(void) {\n    return 1;\n}" }
    assert_above({ "core/a.h" => %w[rs_high], "core/a.c" => %w[rs_inline] }, texts)
  end

  def test_a_table_that_is_known_from_below_is_found
    texts = { "ops/a.c" => "int rs_low(void) { return rs_table[1] + rs_squares[1][1]; }",
              "kernel/b.c" => "const rs_info rs_table[RS_KINDS] = {\n    [1] = {1},\n};\nint rs_one, rs_squares[2][2];" }
    assert_above({ "ops/a.c" => %w[rs_squares rs_table] }, texts)
  end

  def test_a_name_that_begins_with_that_of_its_module_is_found
    texts = { "core/a.c" => "int rs_low(rs_x *x) { return uring_open(x) + sim_world + x->uring_ring + x->sim.sim_file; }",
              "backend/b.c" => "int uring_open(rs_x *x) {\n}\nint uring_ring(void) {\n}\nint sim_file;\n" \
                               "struct world sim_world = {0};\nAPART static int rs_low(void) {\n}" }
    assert_above({ "core/a.c" => %w[sim_world uring_open] }, texts)
  end

  def test_the_engines_tests_know_no_ruby
    assert_empty(each_include("engine/test/*.{c,h}") do |_path, _form, header|
      "the engine's tests know no Ruby" if header.match?(%r{\bruby\b|binding/})
    end)
  end

  def test_a_look_at_includes_where_no_file_is_fails
    assert_raises(Minitest::Assertion) { each_include("engine/test/*.cc") { nil } }
  end

  # A kind's place among the others means nothing; what several kinds have in common is a column of their table.
  KINDS_IN_ORDER = /[<>]=?\s*RS_OP_(?!KINDS\b)|\bRS_OP_\w+\s*[<>]/

  def test_nobody_compares_kinds_of_ops_by_their_order
    found = offending_lines(glob("{engine,runtime/{ext,test}}/**/*.{c,h}"), KINDS_IN_ORDER)
    assert_empty found, "ask a column of ringspun/ops/op_kinds.h"
  end

  def test_a_comparison_of_kinds_by_their_order_is_found
    assert_match KINDS_IN_ORDER, "request->kind >= RS_OP_SPLICE"
    assert_match KINDS_IN_ORDER, "RS_OP_WRITEV < kind"
    refute_match KINDS_IN_ORDER, "for (int kind = 0; kind < RS_OP_KINDS; kind++) call->kind == RS_OP_READ;"
  end

  # What a system is called and has is known to kernel/, and to the backends that are made of it: so that another system needs new
  # files and no change to others. The rest of the engine is C11 with its library, and clock_gettime in time.h; pthread.h is for
  # channels, whose lock is shared with threads that have no machine, and sys/uio.h for the struct by which systems name memory.
  ANY_SYSTEM = %w[errno.h limits.h pthread.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h sys/uio.h
                  time.h].freeze

  def test_only_kernel_and_backends_know_the_system
    rooms = "{,core/,ops/,flow/,procs/}"
    found = each_include("engine/{include/ringspun,src}/#{rooms}*.{c,h}") { |_, form, header| of_system(form, header) }
    assert_empty found
  end

  def test_a_header_of_the_system_is_found
    found = [%w[< sys/socket.h], %w[< stdint.h], %w[" core/base.h], %w[< poll.h], %w[" unistd.h]]
    assert_equal [0, 3, 4], found.each_index.select { |index| of_system(*found[index]) }
  end

  # What is fuzzed, and may be read without the rest. Rooms behind it may know it.
  CODECS = { "postgres/ext/ringspun_postgres" => %w[codec client], "http/ext/ringspun_http" => %w[codec server] }.freeze

  def test_a_codec_knows_neither_ruby_nor_ringspun
    found = CODECS.keys.flat_map do |folder|
      each_include("#{folder}/codec/*.{c,h}") do |_, form, header|
        form == '"' ? ("is not the codec's" unless header.start_with?("codec/")) : of_system(form, header)
      end
    end
    assert_empty found
  end

  def test_a_codec_calls_nothing_of_what_uses_it
    CODECS.each do |folder, order|
      rooms = Rooms.new(File.basename(folder), order, texts_in(folder))
      assert_equal [[], {}], [rooms.strangers, rooms.above], folder
    end
  end

  def test_every_header_of_the_engine_starts_with_its_comment
    silent = glob("#{ENGINES}.h").reject { |path| File.read(path).match?(%r{\A\s*/[*/]}) }
    assert_empty names(silent), "a header's first comment says who owns what and from which thread it may be called"
  end

  def test_the_runtime_does_not_know_the_gems_above_it
    assert_empty offending_lines(glob("runtime/{lib,ext,sig}/**/*.{rb,rbs,c,h}"),
                                 %r{ringspun[/-](postgres|jobs|http)|Ringspun::(Postgres|Jobs|HTTP)\b})
  end

  # A new Ruby changes what it has, and when is nobody's to foresee: who needs to know asks for that itself.
  VERSIONS = /\bRUBY_(VERSION|PATCHLEVEL|API_VERSION\w*|FIBER_SCHEDULER_VERSION|IO_BUFFER_VERSION)\b|\bHAVE_RB_\w+/
  # And a flag that a Ruby does not have any more is 0 there: asking for it compiles, and the answer is always no.
  FLAGS = /\b(RUBY_|RB_)?FL_\w+/
  HAS = "runtime/ext/ringspun/binding/cruby/has.h"

  def test_nobody_asks_for_the_version_of_ruby
    files = glob("{runtime,jobs,postgres,http}/{ext,lib,exe}/**/*.{c,h,rb}") - glob(HAS)
    offences = offending_lines(files, Regexp.union(VERSIONS, FLAGS))
    # Where a checkout keeps a Ruby's build.
    built = %w[runtime/lib/ringspun.rb: postgres/lib/ringspun/postgres.rb: http/lib/ringspun/http.rb:]
    assert_empty offences.reject { |line| line.start_with?(*built) }, "ask in #{HAS} for what is wanted"
  end

  def test_a_flag_of_ruby_s_is_found
    lines = ["RB_FL_TEST_RAW(self, RUBY_FL_SHAREABLE)", "FL_EXIVAR", "RBASIC(x)->flags & RUBY_FL_EXIVAR"]
    assert_equal lines, lines.grep(FLAGS)
    assert_empty %w[RUBY_TYPED_FROZEN_SHAREABLE RB_OBJ_SHAREABLE_P].grep(FLAGS)
  end

  def test_no_test_compares_versions_of_ruby
    assert_empty offending_lines(glob("{runtime,jobs,postgres,http,bench}/test/**/*.rb"), /RUBY_VERSION\s*([<>=]|\.start_with)/)
  end

  # On Ruby 3.3 two files of that name in the load path break a later `require "fiber"`.
  def test_no_file_has_the_name_of_a_library_of_rubys
    assert_empty glob("*/lib/**/fiber.rb")
  end

  # What every Ruby from 3.3 on has without a gem. Others of Ruby's libraries have become gems (drb with 3.4, logger and fiddle
  # with 4.0), which Bundler hides from a program that does not name them.
  STANDARD = %w[
    bundler/gem_helper bundler/setup cgi/escape date delegate digest digest/sha1 erb etc fileutils io/console io/nonblock io/wait
    ipaddr json mkmf monitor net/http objspace open-uri open3 openssl optparse pathname pp prism pty rbconfig rubygems/package
    securerandom socket stringio strscan tempfile timeout tmpdir uri yaml zlib
  ].freeze

  # What only somebody who has that gem requires: what makes it go with ours, and helpers for tests of a program's own.
  FOR_USERS_OF = { "active_job/arguments" => %w[jobs/lib/ringspun/jobs/sidekiq/current_attributes.rb],
                   "active_support/time" => %w[jobs/lib/ringspun/jobs/sidekiq/current_attributes.rb],
                   "active_support/current_attributes" => %w[jobs/lib/ringspun/jobs/sidekiq/current_attributes.rb],
                   "action_mailer" => %w[jobs/test/rails/active_job_test.rb], # where the application's own gems are
                   "async" => %w[runtime/lib/ringspun/async.rb],
                   "opentelemetry" => %w[runtime/lib/ringspun/opentelemetry.rb],
                   "rails/railtie" => %w[runtime/lib/ringspun/rails_isolation.rb jobs/lib/ringspun/jobs/railtie.rb
                                         http/lib/ringspun/http/railtie.rb],
                   "rails/generators" => %w[jobs/lib/generators/ringspun/install/install_generator.rb],
                   "active_job" => %w[jobs/lib/ringspun/jobs/active_job.rb jobs/lib/ringspun/jobs/sidekiq/current_attributes.rb],
                   "active_support" => %w[postgres/lib/ringspun/postgres/notifications.rb],
                   "active_support/notifications" => %w[postgres/lib/ringspun/postgres/notifications.rb],
                   "rackup/handler" => %w[http/lib/rackup/handler/ringspun.rb],
                   "active_record" => %w[jobs/lib/ringspun/jobs/active_record.rb],
                   # The program's own; and where Bundler hides it, the version tells what it would have kept apart. Tests of it
                   # are programs with the gems of Rails.
                   "sqlite3" => %w[jobs/lib/ringspun/jobs/storage/sqlite/library.rb jobs/test/rails/own_file_test.rb
                                   jobs/test/support/own_file_prelude.rb jobs/test/support/own_library_suite.rb],
                   "rails" => %w[jobs/test/support/rails_prelude.rb],
                   "fiddle" => %w[jobs/lib/ringspun/jobs/storage/sqlite/library.rb jobs/test/storage/sqlite_library_test.rb
                                  jobs/test/support/disk_faults.rb],
                   "minitest" => %w[jobs/lib/ringspun/jobs/minitest.rb], "rspec/core" => %w[jobs/lib/ringspun/jobs/rspec.rb],
                   "rspec/expectations" => %w[jobs/lib/ringspun/jobs/rspec.rb] }.freeze

  def test_a_gem_names_the_libraries_that_it_requires
    unnamed = %w[runtime jobs postgres].flat_map do |gem|
      named = gems_of("#{gem}/*.gemspec", /add_dependency "([^"]+)"/)
      required_by("#{gem}/{exe/*,{lib,ext}/**/*.rb}").reject do |path, library|
        library.start_with?("ringspun") || STANDARD.include?(library) || named.include?(gem_of(library)) ||
          FOR_USERS_OF[library]&.include?(path)
      end
    end
    assert_empty unnamed, "a library that no Gemfile brings by itself; name it in the gemspec"
  end

  # Libraries that do not begin with their gem's name.
  GEMS = { "active_job" => "activejob", "extralite" => "extralite-bundle",
           "active_support/core_ext/string/output_safety" => "activerecord",
           "active_support" => "activerecord", "active_support/core_ext" => "activerecord",
           "active_support/ordered_options" => "activerecord", "active_support/error_reporter" => "activerecord",
           "active_support/notifications" => "activerecord", "opentelemetry/sdk" => "opentelemetry-sdk",
           "active_record/connection_adapters/postgresql_adapter" => "activerecord", "active_record" => "activerecord",
           "active_record/connection_adapters/sqlite3_adapter" => "activerecord",
           "io/stream" => "io-stream", "websocket/driver" => "websocket-driver",
           "rake/extensiontask" => "rake-compiler", "rspec/core" => "rspec-core",
           "rspec/expectations" => "rspec-expectations" }.freeze
  # And a peer that runs on another Ruby, which has gems of its own.
  OWN = %r{\A(\./|cluster/|uringmachine|ringspun|concurrently|bench|random|support|torture|\w+_helper|api_extension)\b}

  def test_the_gemfile_names_the_libraries_that_tests_and_tasks_require
    named = gems_of("{Gemfile,*/*.gemspec}", /^\s*(?:gem|spec\.add_dependency) "([^"]+)"/)
    rooms = "{jobs,runtime,postgres,http,bench}/{,lib/**/,peers/,perf/,tables/,test/**/}"
    unnamed = required_by("{#{rooms},rakelib/,examples/}*.{rb,rake}")
              .reject { |_, library| library.match?(OWN) || STANDARD.include?(library) || named.include?(gem_of(library)) }
              .reject { |path, library| FOR_USERS_OF[library]&.include?(path) }
    assert_empty unnamed, "a library that Bundler may hide; name its gem in the Gemfile"
  end

  def test_no_tab_and_no_blank_at_a_line_end
    assert_empty offending_lines(ALL, /\t| $/)
  end

  # YARD takes one inside of a line for text.
  TAG_IN_A_LINE = /^\s*(?:\/?\*|#) .*\S @(?:param|return|raise|yieldparam|yieldreturn|since)\b/

  def test_a_tag_of_the_reference_begins_its_line
    assert_empty offending_lines(glob("{runtime,jobs,postgres}/{ext,lib}/**/*.{c,h,rb}"), TAG_IN_A_LINE)
    assert_match TAG_IN_A_LINE, " * @raise [A] when so @raise [B] when not"
    assert_match TAG_IN_A_LINE, "    # else. @since 0.1.0"
    refute_match TAG_IN_A_LINE, "    #   @since 0.1.0"
  end

  def test_nothing_is_put_off_in_a_comment
    # In two pieces, for this file is judged as well.
    assert_empty offending_lines(ALL, /\b(#{%w[TO DO].join}|#{%w[FIX ME].join})\b/)
  end

  private

  def glob(pattern) = self.class.glob(pattern)
  def names(paths) = paths.map { |path| path.delete_prefix("#{ROOT}/") }

  # Pairs of a path and what it requires, also inside a program that it holds as text.
  def required_by(pattern)
    glob(pattern).flat_map do |path|
      File.read(path).scan(/^\s*(?:require|autoload\s+:\w+,)\s*\(?"([^"#]+)"/).map { |library,| [names([path]).first, library] }
    end
  end

  def gems_of(pattern, line) = glob(pattern).flat_map { |path| File.read(path).scan(line).flatten }
  def gem_of(library) = GEMS.fetch(library) { library[%r{\A[^/]+}].tr("_", "-") }

  def inside_engine?(path, header)
    [File.dirname(path), "#{ENGINE}/include", "#{ENGINE}/src"].any? do |folder|
      target = File.expand_path(header, folder)
      target.start_with?("#{ENGINE}/") && File.exist?(target)
    end
  end

  # Where a compiler looks for it, in that order.
  def past_the_door(path, header)
    folders = [File.dirname(path), EXTENSION, "#{ENGINE}/include", "#{ENGINE}/src"]
    found = folders.map { |folder| File.expand_path(header, folder) }.find { |candidate| File.exist?(candidate) }
    found &&= File.realpath(found) # the engine lies behind a link as well
    "a binding includes ringspun/engine.h alone" if found&.start_with?("#{ENGINE}/") && found != DOOR
  end

  def found_above(house, rooms)
    found = Rooms.new(House::NAMES.fetch(house, house), rooms, texts_of(house))
    assert_empty found.strangers, "no room has it"
    found.above.transform_keys { |path| "#{house}/#{path}" }
  end

  def texts_of(house) = house == "engine" ? House.texts("engine") : texts_in("runtime/ext/ringspun/#{house}")

  # By their names in the folder.
  def texts_in(folder)
    texts = glob("#{folder}/**/*.{c,h}").to_h { |path| [path.delete_prefix("#{ROOT}/#{folder}/"), File.read(path)] }
    refute_empty texts
    texts
  end

  # In quotes a header of the system is found as well.
  def of_system(form, header)
    any = form == "<" ? ANY_SYSTEM.include?(header) : header.include?("/") || header == "rooms.h"
    "only kernel/ and backend/ know the system" unless any
  end

  def assert_above(expected, texts) = assert_equal(expected, Rooms.new("engine", ROOMS["engine"], texts).above)

  # Yields every #include and gathers what the block objects to.
  def each_include(pattern)
    paths = glob(pattern)
    refute_empty paths, pattern
    paths.flat_map do |path|
      File.read(path).scan(/^\s*#\s*include\s+(["<])([^">]+)/).filter_map do |form, header|
        objection = yield(path, form, header)
        "#{names([path]).first}: #{header}: #{objection}" if objection
      end
    end
  end

  def offending_lines(paths, pattern)
    paths.flat_map do |path|
      next [] unless File.read(path).match?(pattern) # as hardly any does

      File.foreach(path).with_index(1).filter_map do |line, number|
        "#{names([path]).first}:#{number}: #{line.strip}" if line.chomp.match?(pattern)
      end
    end
  end
end

Minitest.after_run do
  lengths = TidyTest::ALL.to_h { |path| [path.delete_prefix("#{TidyTest::ROOT}/"), File.foreach(path).count] }
  long = lengths.select { |_, lines| lines > TidyTest::LINES_MANY }
  puts "longer than #{TidyTest::LINES_MANY} lines: #{long.map { |path, lines| "#{path} (#{lines})" }.join(", ")}" if long.any?

  asserts = TidyTest::ROOMS["engine"].map do |room|
    code = TidyTest.glob("engine/{src,include/ringspun}/#{room}{.c,/**/*.{c,h}}").map { |path| File.read(path) }.join
    format("%s %.2f", room, code.scan(/^ .*\bRS_(?:ASSERT|CHECK)\(/).size.fdiv(code.scan(/^#{Rooms::FUNCTION}/o).size))
  end
  puts "asserts a function of the engine: #{asserts.join(", ")}"
end
