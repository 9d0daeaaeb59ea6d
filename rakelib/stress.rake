# frozen_string_literal: true

require "etc"
require "open3"
require "rbconfig"

# The long random runs, and tests of Postgres, with the extensions under AddressSanitizer. Only our C is instrumented, and not
# Ruby; but libasan is preloaded, so that Ruby uses its malloc as well.

ASAN_ROOT = File.expand_path("tmp/asan/#{RUBY_VERSION}")
ASAN_LOGS = "#{ASAN_ROOT}/logs"

# A lib folder for all gems with an extension. It has copies of the files that load the libraries, which lie beside them there.
ASAN_LIB = "#{ASAN_ROOT}/lib"
ASAN_LIBRARIES = EXTENSIONS.keys.map { |name| "#{ASAN_LIB}/ringspun/#{RUBY_VERSION[/\d+\.\d+/]}/#{name}.so" }.freeze

# No red zones on stacks: a fiber that is left for ever by a switch or a longjmp does not clean them up, and the next user of the
# stack would be blamed. Blocks of malloc, which have all that outlives a call, have red zones.
ASAN_FLAGS = "address --param asan-stack=0"

# No search for leaks, for Ruby frees next to nothing when it ends. Ruby's handler of SIGSEGV and the stack for it stay, for
# compaction needs them.
ASAN_OPTIONS = %w[
  detect_leaks=0 detect_stack_use_after_return=0 use_sigaltstack=0 halt_on_error=1 abort_on_error=0 exitcode=99
].freeze
ASAN_REQUIRES = %w[-rringspun/postgres -rringspun/http].freeze
ASAN_FINDING = /ERROR: AddressSanitizer|AddressSanitizer CHECK failed/

STRESS_BACKENDS = %w[uring epoll].freeze

# A program runs for so long at a time, so that all of them begin soon, and often, each time with another seed.
STRESS_TURN_SECONDS = 60

def asan_env
  libasan = File.realpath(Open3.capture2("gcc", "-print-file-name=libasan.so").first.strip)
  { "LD_PRELOAD" => libasan, "ASAN_OPTIONS" => ASAN_OPTIONS.join(":") }
end

# Runs Ruby with the instrumented libraries. Returns its output, with reports of the sanitizer about it and its children, and its
# status.
def asan_ruby(*arguments, env: {}, limit: 60)
  Open3.capture2e({ **env, **asan_env }, "timeout", "--kill-after=5", limit.to_s,
                  RbConfig.ruby, "-w", "-I#{ASAN_LIB}", "-Iruntime/test", *arguments)
end

# Reads the byte behind a block, in a memcpy that is not instrumented itself.
OVERRUN = <<~C
  #include <stdlib.h>
  #include <string.h>
  void Init_overrun(void) { char copy[17], *block = malloc(16); memcpy(copy, block, 17); }
C

# Checks that AddressSanitizer is in force: else each run would pass.
def prove_asan
  ASAN_LIBRARIES.each do |library|
    symbols, = Open3.capture2("nm", "--dynamic", "--undefined-only", library)
    abort "#{library} is not instrumented" unless symbols.include?("__asan_report_store")
  end

  maps, status = asan_ruby(*ASAN_REQUIRES, "-e", 'Ringspun.run { puts File.read("/proc/self/maps") }')
  libraries = maps.scan(%r{/\S*/(?:\w*native|libasan)\.so\S*}).uniq
  only = libraries.size == ASAN_LIBRARIES.size + 1 && libraries.grep(/libasan/).any?
  unless status.success? && (ASAN_LIBRARIES - libraries).empty? && only
    abort "AddressSanitizer is not in force: #{libraries.empty? ? maps : libraries}"
  end

  overrun = "#{ASAN_ROOT}/overrun.so"
  told, status = Open3.capture2e("gcc", *%w[-O0 -fno-builtin -w -shared -fPIC -x c -o], overrun, "-", stdin_data: OVERRUN)
  abort told unless status.success?

  output, status = asan_ruby("-e", "require ARGV.first", overrun)
  return if status.exitstatus == 99 && output.match?(ASAN_FINDING)

  abort "AddressSanitizer lets a read past the end of a block pass: #{output}"
end

StressRun = Struct.new(:program, :backend, :counts, :failures) do
  def name = File.basename(program, "_torture.rb")

  def turn(seconds)
    output, status = asan_ruby(program, limit: (seconds * 3) + 120, env: {
                                 "RINGSPUN_BACKEND" => backend, "RINGSPUN_TORTURE_SECONDS" => seconds.to_s,
                                 "RINGSPUN_TEST_LIMIT_SECONDS" => ((seconds * 2) + 60).to_s
                               })
    counted = output[/^torture on #{backend}: (.*)$/, 1].to_s.scan(/(\d+) (\w+)/)
    counted.each { |count, what| counts[what] += Integer(count) }
    # A report about a child counts as well, whatever the parent's status.
    fail_with(output, status) if !status.success? || output.match?(ASAN_FINDING) || counted.empty?
  end

  def fail_with(output, status)
    log = "#{ASAN_LOGS}/#{name}-#{backend}-#{Time.now.strftime("%F-%H%M%S")}"
    File.write(log, output)
    failures << log
    puts "FAILED: #{name} on #{backend} ended with #{status.exitstatus || status}; all of this is in #{log}", output
  end

  def to_s
    told = counts.map { |what, count| "#{count} #{what}" }.join(", ")
    "#{name} on #{backend}: #{told.empty? ? "nothing counted" : told}#{", #{failures.size} FAILED" if failures.any?}"
  end
end

def build_asan(name, sources)
  wanted = [ASAN_FLAGS, *FileList["#{sources}/**/*.c"].sort].join("\n")
  extconf = File.expand_path("#{sources}/extconf.rb")
  chdir(mkdir_p("#{ASAN_ROOT}/#{name}", verbose: false).first, verbose: false) do
    unless File.exist?("plan") && File.read("plan") == wanted
      sh({ "RINGSPUN_SANITIZE" => ASAN_FLAGS }, RbConfig.ruby, extconf, out: File::NULL, verbose: false)
      File.write("plan", wanted)
    end
    sh "make", "--silent", "-j#{Etc.nprocessors}", out: File::NULL, verbose: false
  end
end

def install_asan
  { "runtime/lib/ringspun.rb" => "ringspun.rb", "postgres/lib/ringspun/postgres.rb" => "ringspun/postgres.rb",
    "http/lib/ringspun/http.rb" => "ringspun/http.rb" }
    .each { |from, to| write_if_changed("#{ASAN_LIB}/#{to}", File.read(from)) }
  FileList["runtime/lib/ringspun/*.rb", "postgres/lib/ringspun/postgres", "http/lib/ringspun/http"].each do |path|
    link = "#{ASAN_LIB}/ringspun/#{File.basename(path)}"
    ln_s File.expand_path(path), link, verbose: false unless File.symlink?(link)
  end
  ASAN_LIBRARIES.each do |library|
    cp "#{ASAN_ROOT}/#{File.basename(library, ".so")}/#{File.basename(library)}", "#{library}.new", verbose: false
    mv "#{library}.new", library, verbose: false # as a whole: another process may be using the old one
  end
end

namespace :stress do
  task build: :compile do # whose headers the second extension includes
    mkdir_p [ASAN_LOGS, File.dirname(ASAN_LIBRARIES.first)], verbose: false
    File.open("#{ASAN_ROOT}/lock", File::CREAT | File::RDWR) do |lock|
      lock.flock(File::LOCK_EX) # two of these must not write the same objects
      EXTENSIONS.each { |name, (sources)| build_asan(name, sources) }
      install_asan
    end
  end

  task(prove: :build) { prove_asan }
end

# A pass that loads the instrumented libraries before those of the tree are found.
def asan_pass(name, files)
  test_pass(name, files, asan_env, ruby: ["-I#{ASAN_LIB}", *ASAN_REQUIRES])
end

namespace :test do
  desc "The long random runs under AddressSanitizer on both backends, for MINUTES=30 (ONLY=io, BACKEND=uring: just that)"
  task stress: "stress:prove" do
    programs = TORTURES.select { |path| File.basename(path).start_with?(ENV.fetch("ONLY", "")) }
    runs = programs.product(ENV["BACKEND"] ? [ENV["BACKEND"]] : STRESS_BACKENDS).map do |program, backend|
      StressRun.new(program, backend, Hash.new(0), [])
    end
    abort "no test ran: no torture matches" if runs.empty?

    share = Float(ENV.fetch("MINUTES", "30")) * 60 / runs.size
    turns = (share / STRESS_TURN_SECONDS).ceil
    turns.times { runs.each { |run| run.turn([(share / turns).round, 3].max) } }
    puts "AddressSanitizer, Ruby #{RUBY_VERSION}:", runs
    abort "the stress found something; see above" if runs.any? { |run| run.failures.any? }
  end
end
