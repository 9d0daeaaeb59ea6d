# frozen_string_literal: true

# mruby with our gem in it, built from the source that MRUBY_SRC names, or else from what bin/setup --matrix has fetched.

MRUBY_SRC = File.expand_path(ENV.fetch("MRUBY_SRC", "tmp/mruby/source"))
# Beside its own, tests that run on CRuby too.
MRUBY_SHARED = %w[await call conclude data detached errors fastest nested nonblock order proc resume].map do |name|
  "runtime/test/evaluation/#{name}_test.rb"
end
MRUBY_TESTS = FileList["mruby/test/*_test.rb"].sort + MRUBY_SHARED
MRUBY_SUPPORT = %w[minitest shared strands descriptors evaluations].map { |name| "mruby/test/support/#{name}.rb" }.freeze
# The flags of each build.
MRUBY_BUILDS = {
  "plain" => [],
  "sanitized" => %w[-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -DRS_CHECKED]
}.freeze

CLEAN.include(MRUBY_BUILDS.keys.map { |build| "tmp/mruby/#{build}" })

def mruby_program(build) = "tmp/mruby/#{build}/host/bin/mruby"

MRUBY_BUILDS.each do |build, flags|
  # mruby's own rake knows what has changed.
  task "mruby:#{build}" do
    no_source = "no source of mruby in #{MRUBY_SRC}: run bin/setup --matrix, or set MRUBY_SRC"
    abort no_source unless File.exist?("#{MRUBY_SRC}/minirake")

    env = { "MRUBY_CONFIG" => File.expand_path("mruby/test/support/build_config.rb"),
            "MRUBY_BUILD_DIR" => File.expand_path("tmp/mruby/#{build}"), "RINGSPUN_MRUBY_FLAGS" => flags.join(" "),
            "INSTALL_DIR" => File.expand_path("tmp/mruby/#{build}/install"), "RUBYOPT" => nil }
    FileUtils.mkdir_p("tmp/mruby/#{build}/install")
    sh env, RbConfig.ruby, "minirake", "--quiet", "-j#{Passes.jobs}",
       chdir: MRUBY_SRC, out: "tmp/mruby/#{build}.log", verbose: false
  end
end

def mruby_pass(name, build, files, env = {})
  abort "no test ran: there is no mruby/test/*_test.rb" if files.empty?

  required = [*MRUBY_SUPPORT, *files].flat_map { |file| ["-r", file] }
  pass(name, "timeout", "--kill-after=5", "300", mruby_program(build), *required, "mruby/test/support/run.rb", env:)
end

desc "The tests of the gem for mruby, on io_uring and epoll, and under sanitizers"
test_passes(:mruby, "mruby:plain", "mruby:sanitized") do
  %w[uring epoll].map { |backend| mruby_pass("mruby on #{backend}", "plain", MRUBY_TESTS, { "RINGSPUN_BACKEND" => backend }) } <<
    mruby_pass("mruby, sanitized", "sanitized", MRUBY_TESTS)
end
