# frozen_string_literal: true

# mruby with our gem in it, built from the source that MRUBY_SRC names, or else from what bin/setup --matrix has fetched.

MRUBY_SRC = File.expand_path(ENV.fetch("MRUBY_SRC", "tmp/mruby/source"))
MRUBY_SOURCES = FileList["mruby/src/**/*.c"].sort
# Beside its own, tests that run on CRuby too.
MRUBY_SHARED = %w[await call conclude data detached errors fastest nested nonblock order proc resume].map do |name|
  "runtime/test/evaluation/#{name}_test.rb"
end
MRUBY_TESTS = FileList["mruby/test/*_test.rb"].sort + MRUBY_SHARED
MRUBY_SUPPORT = %w[minitest shared strands descriptors evaluations].map { |name| "mruby/test/support/#{name}.rb" }.freeze
# Random programs, and what they need beside the support of the others. The generator of evaluations is CRuby's too.
MRUBY_RANDOM = %w[mruby/test/support/environment.rb mruby/test/support/expected_failures.rb
                  runtime/test/support/seeds.rb runtime/test/support/shrink.rb
                  runtime/test/random/evaluation_trees.rb runtime/test/random/evaluation_trees/node.rb
                  runtime/test/evaluation/tree_test.rb mruby/test/random/program.rb mruby/test/random/program_parts.rb
                  mruby/test/random/program_run.rb mruby/test/random/program_test.rb].freeze
# Those that are slow under MRB_GC_STRESS are left out there.
MRUBY_STRESS_TESTS = %w[fiber gc scope].map { |name| "mruby/test/#{name}_test.rb" }.freeze
MRUBY_SANITIZE = %w[-fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -DRS_CHECKED].freeze
# These have all of mruby's usual gems. The others take the compiler of the first.
MRUBY_WHOLE = %w[plain sanitized].freeze
# The flags of each build.
MRUBY_BUILDS = {
  "plain" => [],
  "sanitized" => ["-fsanitize=address,undefined", *MRUBY_SANITIZE],
  "gc_stress" => ["-fsanitize=address", *MRUBY_SANITIZE, "-DMRB_GC_STRESS", "-DMRB_DEBUG"],
  "threads" => ["-fsanitize=thread", *MRUBY_SANITIZE],
  "alone" => %w[-O1],
  "small" => %w[-Os],
  "int32" => %w[-O1 -DMRB_INT32],
  "nan_boxing" => %w[-O1 -DMRB_NAN_BOXING],
  "float_objects" => %w[-O1 -DMRB_WORDBOX_NO_FLOAT_TRUNCATE],
  # Functions in C protect at most 100 objects at once, and Strings count characters.
  "fixed_arena" => %w[-O1 -DMRB_GC_FIXED_ARENA -DMRB_UTF8_STRING]
}.freeze
MRUBY_OTHERS = %w[int32 nan_boxing float_objects fixed_arena].freeze
# What cannot be built, and what its #error says.
MRUBY_REFUSED = { "MRB_NO_FLOAT" => "needs floats", "MRB_USE_FLOAT32" => "needs floats of 64 bits",
                  "MRB_NO_BOXING" => "keeps values in one word" }.freeze

# The gem that is the bench's peer, of which bench/peers/mruby_concurrently makes one for mruby.
MRUBY_PEER = "concurrently"

CLEAN.include([*MRUBY_BUILDS.keys, MRUBY_PEER, "linked"].map { |build| "tmp/mruby/#{build}" })

def mruby_program(build) = "tmp/mruby/#{build}/host/bin/mruby"

# mruby's own rake knows what has changed. But of a header that has gone it says nothing, and leaves the objects that were made
# with it.
def forget_objects_of_lost_headers(build)
  Dir["tmp/mruby/#{build}/host/mrbgems/mruby-ringspun/**/*.d"].each do |list|
    headers = File.read(list).split.grep(/\.h\z/)
    next if headers.all? { |header| File.exist?(File.expand_path(header, MRUBY_SRC)) }

    FileUtils.rm_f([list, list.sub(/d\z/, "o")])
  end
end

def build_mruby(build, config, env)
  no_source = "no source of mruby in #{MRUBY_SRC}: run bin/setup --matrix, or set MRUBY_SRC"
  abort no_source unless File.exist?("#{MRUBY_SRC}/minirake")

  env = { "MRUBY_CONFIG" => File.expand_path(config), "MRUBY_BUILD_DIR" => File.expand_path("tmp/mruby/#{build}"),
          "INSTALL_DIR" => File.expand_path("tmp/mruby/#{build}/install"),
          **%w[RUBYOPT RUBYLIB BUNDLER_SETUP].to_h { |name| [name, nil] }, **env } # this bundle is none of its business
  FileUtils.mkdir_p("tmp/mruby/#{build}/install")
  forget_objects_of_lost_headers(build)
  # Its minirake is whichever rake PATH has, of another Ruby perhaps.
  rake = Gem.loaded_specs.fetch("rake").full_gem_path
  sh env, RbConfig.ruby, "-I#{rake}/lib", "#{rake}/exe/rake", "--quiet", "-j#{Passes.jobs}",
     chdir: MRUBY_SRC, out: "tmp/mruby/#{build}.log", verbose: false
end

MRUBY_BUILDS.each do |build, flags|
  whole = MRUBY_WHOLE.include?(build)
  task "mruby:#{build}" => whole ? [] : "mruby:plain" do
    build_mruby(build, "mruby/test/support/build_config.rb",
                { "RINGSPUN_MRUBY_FLAGS" => flags.join(" "),
                  "RINGSPUN_MRUBY_MRBC" => whole ? nil : File.expand_path("tmp/mruby/plain/host/bin/mrbc") })
  end
end

task "mruby:#{MRUBY_PEER}" do
  folders = ["callbacks_attachable", MRUBY_PEER].map { |gem| Gem::Specification.find_by_name(gem).full_gem_path }
  build_mruby(MRUBY_PEER, "bench/peers/mruby_concurrently/build_config.rb",
              { "BENCH_CONCURRENTLY" => folders.join(File::PATH_SEPARATOR) })
end

# The bench's floor, by the C API of the mruby that has our gem: with the defines of that build.
task "mruby:floor" => "mruby:plain" do
  config = "tmp/mruby/plain/host/bin/mruby-config"
  defines, libraries = %w[--cflags --libs].map { |what| `sh #{config} #{what}`.split }
  sh "gcc", "-O3", "-Wall", "-Wextra", *defines.grep(/\A-[DI]/), "-I#{MRUBY_SRC}/include", "bench/mruby/floor.c",
     "-Ltmp/mruby/plain/host/lib", *libraries, "-o", "tmp/mruby/floor", verbose: false
end

def mruby_pass(name, build, files, env = {}, limit: 300)
  abort "no test ran: there is no mruby/test/*_test.rb" if files.empty?

  required = [*MRUBY_SUPPORT, *files].flat_map { |file| ["-r", file] }
  pass(name, "timeout", "--kill-after=5", limit, mruby_program(build), *required, "mruby/test/support/run.rb", env:)
end

# @param builds [Hash{Array(String, String) => Integer}] a build and a backend => the number of seeds for each generator, where
#   RINGSPUN_SEEDS does not say it
def mruby_random_passes(builds)
  builds.map do |(build, backend), seeds|
    seeds = ENV.fetch("RINGSPUN_SEEDS") { Seeds.part(seeds) }.to_s
    mruby_pass("random programs on mruby, #{build}, on #{backend}", build, MRUBY_RANDOM,
               { "RINGSPUN_BACKEND" => backend, "RINGSPUN_SEEDS" => seeds }, limit: 3600)
  end
end

# A program that opens states in several threads.
%w[sanitized threads].each do |build|
  task "mruby:states:#{build}" => "mruby:#{build}" do
    host = "tmp/mruby/#{build}/host"
    sh "gcc", "-g", "-Wall", "-Wextra", *MRUBY_BUILDS.fetch(build), "-I#{MRUBY_SRC}/include", "-I#{host}/include",
       "mruby/test/host/states.c", "#{host}/lib/libmruby.a", "-lm", "-lpthread", "-o", "tmp/mruby/#{build}/states", verbose: false
  end
end

# On io_uring memory of a read that is in flight when its state is closed stays, for the kernel may still write there.
def states_pass(build, backend)
  pass("states of mruby in threads, #{build}, on #{backend}", "timeout", "--kill-after=5", "120", "tmp/mruby/#{build}/states",
       env: { "RINGSPUN_BACKEND" => backend, "ASAN_OPTIONS" => "detect_leaks=#{backend == "uring" ? 0 : 1}",
              "TSAN_OPTIONS" => "suppressions=#{File.expand_path("mruby/test/host/threads.supp")}" })
end

# Looks at one file of the gem, without building mruby with that.
def mruby_syntax(define, file)
  "gcc -fsyntax-only -Wall -std=gnu11 -D_GNU_SOURCE -DMRB_NO_PRESYM -D#{define} -I#{MRUBY_SRC}/include " \
    "-Iengine/include #{file}"
end

# The first error of each file that has one, for nobody knows which is compiled first.
def refusal_pass(define, message)
  pass("mruby with #{define} is refused", "sh", "-c", "errors=$(for file in #{MRUBY_SOURCES.join(" ")}; do " \
       "#{mruby_syntax(define, "$file")} 2>&1 | grep -m1 error:; done); echo \"$errors\" | grep -q . && " \
       "! echo \"$errors\" | grep -v '#error.*#{message}'")
end

def accepted_pass(define)
  pass("mruby with #{define} is accepted", "sh", "-c", "set -e; for file in #{MRUBY_SOURCES.join(" ")}; do " \
       "#{mruby_syntax("#{define} -Werror", "$file")}; done")
end

# The programs in the documents.
def mruby_documents_pass(backend, build = "plain")
  pass("mruby's documents, #{build}, on #{backend}", RbConfig.ruby, "-w", "bin/support/run_tests.rb",
       "mruby/test/house/guide_test.rb", "mruby/test/house/build_test.rb",
       env: { "MRUBY_SRC" => MRUBY_SRC, "MRUBY" => File.expand_path(mruby_program(build)), "RINGSPUN_BACKEND" => backend })
end

desc "The tests of the gem for mruby, on io_uring and epoll"
test_passes(:mruby, "mruby:plain") do
  %w[uring epoll].flat_map do |backend|
    [mruby_pass("mruby on #{backend}", "plain", MRUBY_TESTS, { "RINGSPUN_BACKEND" => backend }), mruby_documents_pass(backend)]
  end + mruby_random_passes(%w[plain uring] => 1000, %w[plain epoll] => 1000)
end

desc "Random programs on mruby, as rake test:mruby has them: RINGSPUN_SEEDS=100000 of them, or the one of RINGSPUN_SEED=n again"
test_passes(:mruby_random, "mruby:plain") { mruby_random_passes(%w[plain uring] => 1000, %w[plain epoll] => 1000) }

desc "The tests of the gem for mruby, and random programs, under sanitizers"
test_passes(:mruby_sanitized, "mruby:sanitized") do
  [mruby_pass("mruby, sanitized", "sanitized", MRUBY_TESTS), *mruby_random_passes(%w[sanitized uring] => 100)]
end

desc "The tests of the gem for mruby in other builds: with few gems, values of other kinds, a fixed arena, Strings of " \
     "characters, threads and a collection at every allocation, under sanitizers, and what is refused"
test_passes(:mruby_builds, "mruby:alone", "mruby:states:sanitized", "mruby:states:threads", "mruby:gc_stress",
            *MRUBY_OTHERS.map { |build| "mruby:#{build}" }) do
  MRUBY_OTHERS.map { |build| mruby_pass("mruby, #{build}", build, MRUBY_TESTS) } +
    %w[sanitized threads].product(%w[uring epoll]).map { |build, backend| states_pass(build, backend) } +
    MRUBY_REFUSED.map { |define, message| refusal_pass(define, message) } << accepted_pass("MRB_NO_STDIO") <<
    mruby_documents_pass("epoll", "alone") <<
    mruby_pass("mruby, with a collection at every allocation", "gc_stress", MRUBY_STRESS_TESTS)
end

# Where Debian's libmruby-dev and mruby of forky are unpacked (apt-get download, dpkg -x): mruby 4, whose source is not served.
MRUBY4 = File.expand_path(ENV.fetch("MRUBY4", "tmp/mruby/four"))

# The gem as a host program links it that finds mruby built. Its package lacks the list of preallocated symbols, of which the gem
# needs those for errors.
task "mruby:four" => "mruby:plain" do
  none = "no mruby 4 in #{MRUBY4}: MRUBY4 names a folder with libmruby-dev and mruby"
  abort none unless File.directory?("#{MRUBY4}/usr/include")

  to = "tmp/mruby/linked"
  mkdir_p "#{to}/include/mruby/presym", verbose: false
  errors = File.read("#{MRUBY4}/usr/include/mruby.h").scan(/MRB_ERROR_SYM\((\w+)\)/).flatten.uniq
  File.write("#{to}/include/mruby/presym/id.h",
             errors.map { |name| "#define MRB_SYM__#{name} mrb_intern_lit(mrb, \"#{name}\")\n" }.join)
  sh "#{MRUBY4}/usr/bin/mrbc", "-g", "-Bringspun_mrblib", "-o#{to}/mrblib.c", *Dir["mruby/mrblib/*.rb"].sort, verbose: false
  defines = `sh #{MRUBY4}/usr/bin/mruby-config --cflags`.split.grep(/\A-D/)
  includes = ["#{to}/include", "#{MRUBY4}/usr/include", "engine/include"].map { |folder| "-I#{folder}" }
  sh "gcc", "-O1", "-g", "-Wall", "-std=gnu11", "-D_GNU_SOURCE", *defines, *includes,
     *MRUBY_SOURCES, "mruby/test/host/linked.c", "#{to}/mrblib.c",
     *Dir["tmp/mruby/plain/host/mrbgems/mruby-ringspun/engine/**/*.o"], "#{MRUBY4}/usr/lib/libmruby.a", "-lm", "-lpthread",
     "-o", "#{to}/tests", verbose: false
end

desc "The tests of the gem for mruby, on the mruby 4 that MRUBY4 names"
test_passes(:mruby4, "mruby:four") do
  %w[uring epoll].map do |backend|
    pass("mruby 4 on #{backend}", "timeout", "--kill-after=5", "300", "tmp/mruby/linked/tests",
         *MRUBY_SUPPORT, *MRUBY_TESTS, "mruby/test/support/run.rb", env: { "RINGSPUN_BACKEND" => backend })
  end
end
