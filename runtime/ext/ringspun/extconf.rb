# frozen_string_literal: true

require "mkmf"

abort <<~MESSAGE unless RbConfig::CONFIG["target_os"].start_with?("linux")
  ringspun runs on Linux only: its engine waits by io_uring or epoll.
  This Ruby was built for #{RbConfig::CONFIG["target_os"]}.
MESSAGE

# A folder a room.
FOLDERS = %w[
  engine engine/core engine/ops engine/flow engine/kernel engine/backend engine/backend/uring engine/backend/sim
  binding binding/cruby binding/core binding/io binding/stream binding/sync binding/procs binding/scheduler
].freeze

# Ruby's own flags carry what its distribution wanted (-O2, hardening); of two flags the later wins.
# Its warning list goes as a whole, because it is tuned to Ruby's sources and not to ours.
$warnflags = ""
$CFLAGS << " -std=gnu11 -O3 -g -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter"
$CFLAGS << " -Werror" if ENV["RINGSPUN_WERROR"]
$CPPFLAGS << " -DRS_CHECKED" if ENV["RINGSPUN_CHECKED"] || ENV["RINGSPUN_SANITIZE"] # RS_CHECK of the engine
# Each function at the start of a cache line: else a switch costs 60 or 67 ns, by where the linker happens to put it.
$CFLAGS << " -falign-functions=64"

# gnu11 alone does not declare pipe2, accept4 and the like. Ruby's config.h would, but the engine never sees it.
$CPPFLAGS << " -D_GNU_SOURCE -I$(srcdir) -I$(srcdir)/engine"

# The engine's functions are small and the binding calls several of them per switch: inlining across files pays.
# A sanitizer's report is easier to read without it.
if (sanitizer = ENV["RINGSPUN_SANITIZE"])
  extra = " -fsanitize=#{sanitizer} -fno-omit-frame-pointer"
elsif try_link("int main(void) { return 0; }", "-flto=auto")
  extra = " -flto=auto"
end
$CFLAGS << extra.to_s
$DLDFLAGS << extra.to_s

# Folders may have files of the same name, so the objects carry the folder's name.
def prefix(folder) = folder.tr("/", "-")

objects = FOLDERS.to_h do |folder|
  sources = Dir[File.join($srcdir, folder, "*.c")].map { |path| File.basename(path) }.sort
  [folder, sources.map { |source| "#{prefix(folder)}-#{source.delete_suffix(".c")}.#{$OBJEXT}" }]
end
empty = objects.select { |_, names| names.empty? }.keys
abort "ringspun: no C source in #{empty.join(", ")} of #{$srcdir}" if empty.any?

$objs = objects.values.flatten
$srcs = []

# What some Rubies have and others have not. binding/cruby/has.h alone reads the answers.
have_func("rb_thread_lock_native_thread", "ruby/thread.h")

# RubyGems builds in the sources' own folder, and leaves all objects there beside the two copies of the library that it installs.
# Whoever debugs the engine does so in a clone. The names of functions stay, for Ruby's crash report shows them.
for_a_gem = File.realpath($srcdir) == Dir.pwd
$DLDFLAGS << " -Wl,--strip-debug" if for_a_gem

create_makefile("ringspun/native")

# mkmf knows one source folder. A pattern rule per folder is the whole addition. Every object depends on every
# header: a full build takes seconds, and a stale object in an engine with shared structs takes an afternoon.
File.open("Makefile", "a") do |makefile|
  FOLDERS.each do |folder|
    makefile.puts <<~MAKE

      #{prefix(folder)}-%.#{$OBJEXT}: $(srcdir)/#{folder}/%.c
      \t$(ECHO) compiling #{folder}/$(<F)
      \t$(Q) $(CC) $(INCFLAGS) $(CPPFLAGS) $(CFLAGS) $(COUTFLAG)$@ -c $(CSRCFLAG)$<
    MAKE
  end
  makefile.puts "\n$(OBJS): Makefile $(wildcard $(srcdir)/*.h #{FOLDERS.map { "$(srcdir)/#{_1}/*.h" }.join(" ")})"
  # A new Ruby deprecates what it has, and other compilers warn of more. With the flags of the build, and in a second.
  makefile.puts <<~MAKE

    warnings:
    \t$(Q) $(CC) $(INCFLAGS) $(CPPFLAGS) $(CFLAGS) -Werror -fsyntax-only $(wildcard $(srcdir)/binding/*.c $(srcdir)/binding/*/*.c)
  MAKE
  # Comes last, when the library has been copied.
  makefile.puts "\ninstall:\n\t$(Q) $(RM) $(OBJS) $(DLLIB)" if for_a_gem
end
