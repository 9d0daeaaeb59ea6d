# frozen_string_literal: true

# Tests, checks and documents of the Ruby part.

require "open3"
require_relative "../bin/support/selection"
require_relative "../runtime/test/support/share_of_the_day"

TIDY_TESTS = FileList["runtime/test/house/{tidy,seam,short_limits,circles,constants,doors}_test.rb",
                      "jobs/test/house/rooms_test.rb"].sort
RUNTIME_TESTS = (FileList["runtime/test/**/*_test.rb"] - TIDY_TESTS).sort
RAILS_TESTS = FileList["jobs/test/rails/*_test.rb"].sort
JOBS_TESTS = (FileList["jobs/test/**/*_test.rb"] - TIDY_TESTS - RAILS_TESTS).sort
POSTGRES_TESTS = FileList["postgres/test/**/*_test.rb"].sort
HTTP_RAILS_TESTS = FileList["http/test/rails/*_test.rb"].sort
# The jobs need a later one.
ONLY_SERVED = "7.2"
HTTP_FRAMEWORKS_TESTS = FileList["http/test/frameworks/*_test.rb"].sort
HTTP_TESTS = (FileList["http/test/**/*_test.rb"] - HTTP_RAILS_TESTS - HTTP_FRAMEWORKS_TESTS).sort
BENCH_TESTS = FileList["bench/test/**/*_test.rb"].sort
TORTURES = FileList["runtime/test/**/*_torture.rb"].sort

# Where things are kept that only save time: of rubocop here, and of ccache, see bin/support/common.sh.
CACHE = File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "ringspun")

# The comment by which a test file says that it belongs to the short form.
SHORT_STRESS = /^# gc stress: short$/
# And to that of the pass in which all reads and writes of streams go to the ring.
SHORT_RING = /^# stream io: ring$/

# What is left out, and why: bin/support/selection.rb.
def selection
  @selection ||= Selection.new(changes: Changes.new(Dir.pwd), nightly: nightly?, second_ruby: ENV["MATRIX"] == "1")
end

def nightly? = ENV["RINGSPUN_NIGHTLY"] == "1"

# What a change waits for. By night there are ten times as many for each generator.
def seeds_by_day = nightly? ? {} : { "RINGSPUN_SEEDS_TIMES" => ENV.fetch("RINGSPUN_SEEDS_TIMES", "1/2") }

# For a pass that repeats, in other circumstances, what another runs with more seeds of the day.
def fewer_seeds = nightly? ? {} : { "RINGSPUN_SEEDS_TIMES" => "1/4" }

# The environment in which one test of each `parts` runs, whatever was set around it; nil: all of them. See
# runtime/test/support/tests_of_the_day.rb.
def one_test_in(parts) = { "RINGSPUN_ONE_TEST_IN" => parts&.to_s }

# Words for what is left out, by the number of parts. A share within a share has no divisor in common with it, or some tests
# would have no day.
LEFT_OUT = { 3 => "two thirds", 4 => "three quarters", 5 => "four fifths", 12 => "eleven twelfths" }.freeze

# For a pass that repeats in other circumstances what a change need not wait for: one part of its tests, another each day.
def part_of(parts, what)
  return one_test_in(nil) if nightly?

  selection.leave_out("#{LEFT_OUT.fetch(parts)} of #{what}", "run on the next days, and by night")
  one_test_in(parts)
end

# A task by its own name has all of them.
def part_of_short(parts, what) = ENV["SHORT"] ? part_of(parts, what) : one_test_in(nil)

# For a pass that repeats elsewhere what another runs, and for one whose files say `# in turns: INPUTS`: one part of its tests,
# unless one of these inputs has changed.
def in_turns(pass_name, inputs, parts = 3)
  one_test_in(selection.now?("#{LEFT_OUT.fetch(parts)} of #{pass_name}", inputs) ? nil : parts)
end

# For a pass that has all of its tests in a task by its own name.
def in_turns_short(...) = ENV["SHORT"] ? in_turns(...) : {}

def for_this_ruby(files) = selection.of(some(files))

# A pattern that no longer matches any file must not look like tests that have passed.
def some(files) = files.empty? ? abort("no test ran: no file matches") : files

# What meters them and what watches them need no gem, and would load Bundler by these. The process of the tests does so by itself.
WITHOUT_BUNDLER = { "RUBYOPT" => nil, "BUNDLER_SETUP" => nil }.freeze

# @param ruby [Array<String>] options of the Ruby that runs them
def test_pass(name, files, env = {}, ruby: [])
  pass(name, RbConfig.ruby, "-w", "bin/support/run_tests.rb", *ruby.map { |option| "--ruby=#{option}" }, *some(files),
       env: { **WITHOUT_BUNDLER, **env })
end

# The comment of files that have a process of their own, by the name of the pass. `collections` are tests that collect at every
# allocation, which takes longer the more objects others have left. `crowds` leave most, stacks of strands, which each fork
# copies.
OWN_PASS = /^# pass: (\w+)$/

def split_passes(name, files, env = {})
  own, others = for_this_ruby(files).partition { |path| File.read(path).match?(OWN_PASS) }
  in_parts = others.group_by.with_index { |_, index| "#{index % Passes.jobs + 1} of #{Passes.jobs}" }
  in_parts.merge(own.group_by { |path| File.read(path)[OWN_PASS, 1] }).map do |part, list|
    test_pass(title = "#{name}, #{part}", list, { **env, **turns_of(title, list) })
  end
end

def turns_of(pass_name, files)
  inputs = files.map { |path| File.read(path)[Selection::IN_TURNS, 1] }
  inputs.all? ? in_turns(pass_name, [*inputs.flat_map { |text| text.split(", ") }, *files]) : {}
end

desc "The tree's own rules: who may know whom, who may assign what, sizes, blanks"
test_passes(:tidy) { [test_pass("tidy", TIDY_TESTS)] }

namespace :house do
  desc "A table of the circles among files, by room, and the arrows that run back. HOUSE=jobs/lib for one of them"
  task :circles do
    require_relative "../runtime/test/house/houses"
    House.all.each { |house| puts house.report, "" if [nil, house.folder].include?(ENV["HOUSE"]) }
  end
end

desc "The extensions without a warning of the compiler or of Ruby's headers, which deprecate what a later Ruby will not have"
test_passes(:werror, :compile) do
  EXTENSION_BUILDS.map do |build|
    pass("warnings, #{build.split("/")[-2]}", "make", "--no-print-directory", "-C", build, "warnings")
  end
end

desc "The Ruby tests of the runtime, the jobs, the Postgres client, HTTP and the bench"
test_passes(:ruby, :compile) do
  # In passes of their own, for the runtime's test helper watches every test of its process. That of the bench is the longest.
  [*whole_pass("the bench", BENCH_TESTS, in_turns_short("the bench", %w[bench])), *split_passes("the runtime", RUNTIME_TESTS),
   *split_passes("the jobs", JOBS_TESTS), *whole_pass("Postgres", POSTGRES_TESTS),
   *whole_pass("HTTP", HTTP_TESTS)]
end

# One process for all of them; none where all are left out.
def whole_pass(name, files, env = {})
  chosen = for_this_ruby(files)
  chosen.empty? ? [] : [test_pass(name, chosen, env)]
end

# A pass for each version of Rails whose gems are here for this Ruby, see bin/support/rails.sh.
desc "Jobs in generated Rails applications, on SQLite and Postgres, and such applications on our web server"
test_passes(:rails, :compile) do
  stamps = FileList["tmp/setup/rails-*-#{RUBY_VERSION}"].sort
  versions = stamps.filter_map { |stamp| stamp[/rails-([\d.]+)-/, 1] }
  abort "no test ran: the gems of Rails are missing; run bin/setup" if versions.empty? && ENV["MATRIX"] != "1"

  if versions.empty?
    why = nightly? ? "has no gems of it, see bin/setup --matrix" : "runs by night"
    selection.leave_out("Rails on Ruby #{RUBY_VERSION}", why)
  end
  versions.select! { |version| ENV["MATRIX"] != "1" || selection.now?("Rails #{version} on Ruby #{RUBY_VERSION}") }
  # A test may start an application three times, beside other passes.
  limit = { "RINGSPUN_TEST_LIMIT_SECONDS" => "180" }
  passes = versions.flat_map do |version|
    env = { "RINGSPUN_RAILS" => version, **limit }
    web = rails_pass("HTTP, Rails #{version}", HTTP_RAILS_TESTS, env, %w[http])
    jobs = %w[jobs/lib jobs/test/rails jobs/test/support]
    version == ONLY_SERVED ? [web] : [rails_pass("Rails #{version}", RAILS_TESTS, env, jobs), web]
  end
  others = nightly? && stamps.any? { |stamp| stamp.include?("rails-frameworks-") }
  others ? [*passes, test_pass("HTTP, other frameworks", HTTP_FRAMEWORKS_TESTS, limit)] : passes
end

# They start applications to see what tests without Rails have seen.
def rails_pass(name, files, env, inputs) = test_pass(name, files, { **env, **in_turns_short(name, inputs) })

# The comment by which a file of Postgres tests says on which servers it runs beside the default one: `all` of
# Servers::POSTGRES_VARIANTS, or those that it names. One of the jobs says `valkey`.
ON_SERVERS = /^# servers: (.+)$/

def runs_on?(server, path) = ["all", server].intersect?(File.read(path)[ON_SERVERS, 1].to_s.split(", "))

# A pass for each of these servers. Behind PgBouncer each transaction costs a process of the server.
def server_passes(servers)
  files = some(POSTGRES_TESTS.select { |path| File.read(path).match?(ON_SERVERS) })
  servers.filter_map do |server|
    chosen, others = files.partition { |path| runs_on?(server, path) }
    puts "Not on #{server}, by their own word: #{others.join(" ")}" if others.any?
    next if chosen.empty?

    name = "Postgres on #{server}"
    share = in_turns(name, %w[postgres], server.start_with?("pgbouncer") ? 12 : 5)
    test_pass(name, chosen, { "RINGSPUN_POSTGRES" => server, **fewer_seeds, **share })
  end
end

# Where there is no Redis beside it, the passes before have run on it.
def valkey_passes(here)
  missing = Servers::REDIS_VARIANTS - here
  if missing.any?
    puts "No second time on Valkey: there is no #{missing.join(" and no ")} here."
    return []
  end

  files = some(JOBS_TESTS.select { |path| runs_on?("valkey", path) })
  name = "the jobs on Valkey"
  [test_pass(name, files, { "RINGSPUN_REDIS" => "valkey", **fewer_seeds, **in_turns(name, %w[jobs/lib/ringspun/jobs/storage]) })]
end

desc "The tests of Postgres that say `servers: all` on PostgreSQL 15 or 17, in turns by the day, a fifth each day, and through " \
     "PgBouncer, a twelfth; by night all on both, and through one whose sessions are used once, and one that knows of prepared " \
     "statements. Those of the jobs that say `servers: valkey` on Valkey, a third each day"
test_passes(:servers, :compile) do
  require_relative "../runtime/test/support/servers"
  here, missing = Servers::POSTGRES_VARIANTS.keys.partition { |server| Servers.postgres_here?(server) }
  puts "Nothing runs on #{missing.join(", ")}: there is none here, and bin/setup --matrix has found none." if missing.any?
  redis_here = Servers::REDIS_VARIANTS.select { |server| Servers.redis_here?(server) }
  [*server_passes(here & servers_of_the_day), *valkey_passes(redis_here)]
end

# One of the two versions of Postgres a day, in turns.
def servers_of_the_day
  today = [*ShareOfTheDay.new(2).of(%w[15 17]), "pgbouncer"]
  Servers::POSTGRES_VARIANTS.keys.select do |server|
    today.include?(server) || selection.now?("Postgres on #{server}", %w[postgres])
  end
end

# Those that bin/setup --matrix has found, each with gems of its own. One pass at a time, for this is one beside others.
desc "`rake test:matrix` on the other Rubies"
test_passes(:rubies) do
  FileList["tmp/setup/ruby-{matrix,4}"].map do |stamp|
    ruby = File.read(stamp).chomp
    bundler = [ruby, "-e", 'gem "bundler"; load Gem.bin_path("bundler", "bundle")', "--"]
    env = Bundler.unbundled_env
    pass("Ruby #{`#{ruby} -v`[/[\d.]+/]}", *bundler, "exec", "rake", "test:matrix",
         env: { **ENV.to_h.transform_values { nil }, **env, "JOBS" => "1", "SHORT" => nil })
  end
end

desc "The Ruby tests of the runtime and of HTTP on epoll, for hosts where the ones before ran on io_uring"
test_passes(:epoll, :compile) do
  next [] unless ENV["MATRIX"] != "1" || selection.now?("the runtime and HTTP on epoll on Ruby #{RUBY_VERSION}")

  # By day without tests that use no backend, or one of their own: the passes before have run them.
  only = nightly? ? {} : { "RINGSPUN_BACKEND_ONLY" => "1" }
  env = { "RINGSPUN_BACKEND" => "epoll", **only, **fewer_seeds }
  share = part_of_short(4, "the tests of the runtime on epoll")
  [*split_passes("the runtime on epoll", RUNTIME_TESTS, { **env, **share }),
   # They rest on what the tests of the runtime have seen there, so a few a day are enough.
   *whole_pass("HTTP on epoll", HTTP_TESTS, { **env, **part_of_short(5, "the tests of HTTP on epoll") })]
end

desc "Tests with all reads and writes of streams by the ring: those that say `stream io: ring`, and without SHORT=1 whole rooms"
test_passes(:ring, :compile) do
  rooms = RUNTIME_TESTS.grep(%r{\Aruntime/test/(?:io|stream|scheduler|scheduler_io|select)/})
  short = RUNTIME_TESTS.select { |path| File.read(path).match?(SHORT_RING) }
  files = ENV["SHORT"] ? short : rooms | short
  [test_pass("the runtime by the ring", files, { "RINGSPUN_BACKEND" => nil, "RINGSPUN_STREAM_IO" => "ring", **fewer_seeds })]
end

desc "Tests with a collection at every allocation: those that say `gc stress: short`, and without SHORT=1 all of the runtime"
test_passes(:gc_stress, :compile) do
  short = (RUNTIME_TESTS + POSTGRES_TESTS + HTTP_TESTS).select { |path| File.read(path).match?(SHORT_STRESS) }
  files = ENV["SHORT"] ? short : RUNTIME_TESTS | short
  env = { "RINGSPUN_GC_STRESS" => "1", **part_of_short(4, "the tests with a collection at every allocation") }
  some(files).map { |path| test_pass("gc stress, #{path.pathmap("%-1d/%n")}", [path], env) }
end

desc "Random trees of evaluations on simulated machines: SEEDS=10000 of them (SHORT=1: 2500), or the one of SEED=n again"
test_passes(:evaluations, :compile) do
  seeds = { "RINGSPUN_SEEDS" => ENV.fetch("SEEDS") { ENV["SHORT"] ? "2500" : "10000" }, "RINGSPUN_SEED" => ENV["SEED"] }
  [test_pass("evaluations", ["runtime/test/evaluation/tree_test.rb"], { **seeds, "RINGSPUN_TEST_LIMIT_SECONDS" => "3600" })]
end

desc "Random programs of every waiting call on simulated machines: SEEDS=100000 of them, or the one of SEED=n again"
test_passes(:waits, :compile) do
  seeds = { "RINGSPUN_SEEDS" => ENV.fetch("SEEDS", "100000"), "RINGSPUN_SEED" => ENV["SEED"] }
  [test_pass("waits", ["runtime/test/simulation/waits_test.rb"], { **seeds, "RINGSPUN_TEST_LIMIT_SECONDS" => "3600" })]
end

desc "Wakes from other threads, for 30 s"
test_passes(:wakes, :compile) do
  [test_pass("wakes", ["runtime/test/strands/wake_torture.rb"], { "RINGSPUN_TORTURE_SECONDS" => "30" })]
end

desc "Long random runs, runtime/test/**/*_torture.rb, each for SECONDS=60"
test_passes(:torture, :compile) do
  seconds = ENV.fetch("SECONDS", "60")
  env = { "RINGSPUN_TORTURE_SECONDS" => seconds, "RINGSPUN_TEST_LIMIT_SECONDS" => (Integer(seconds) * 2 + 60).to_s }
  some(TORTURES).map { |path| test_pass(path.pathmap("%n"), [path], env) }
end

desc "Formatting"
test_passes(:rubocop) do
  kept = nightly? ? %w[--cache false] : ["--require", "./bin/support/rubocop_cache", "--cache-root", "#{CACHE}/rubocop"]
  command = ["rubocop", *kept]
  files = to_format(*command)
  files == [] ? [] : [pass("rubocop", *command, "--format", "simple", *files)]
end

# Those that have changed, as far as rubocop looks at them; nil for all, also after a change in what it goes by.
def to_format(*command)
  changed = selection.changed(["**/*"]) unless nightly?
  return if changed.nil? || selection.changed([".rubocop.yml", "Gemfile.lock"]).any?

  list, status = Open3.capture2(*command, "--list-target-files")
  status.success? or abort "rubocop cannot list what it looks at"
  files = changed & list.lines(chomp: true)
  selection.leave_out("rubocop of all files but #{files.size}", "nothing has changed in them")
  files
end

desc "The signatures"
test_passes(:rbs) do
  folders = %w[runtime/sig jobs/sig postgres/sig http/sig]
  empty = folders.select { |folder| FileList["#{folder}/**/*.rbs"].empty? }
  abort "no test ran: there is no signature under #{empty.join(", ")}" if empty.any?

  [pass("rbs", "rbs", *folders.flat_map { |folder| ["-I", folder] }, "validate")]
end

desc "The reference, into tmp/doc"
task :doc do
  # Not with --quiet, for then --fail-on-warning has no effect.
  sh "yard", "doc", "--no-progress", "--no-stats", "--db", "tmp/yardoc", "--output-dir", "tmp/doc", "--fail-on-warning",
     "{runtime,jobs,postgres,http}/lib/**/*.rb", "runtime/ext/ringspun/binding/**/*.c",
     "postgres/ext/ringspun_postgres/client/**/*.c", "http/ext/ringspun_http/server/*.c", verbose: false
end
