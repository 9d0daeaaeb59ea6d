# frozen_string_literal: true

require "mkmf"

abort <<~MESSAGE unless RbConfig::CONFIG["target_os"].start_with?("linux")
  ringspun runs on Linux only: its engine speaks epoll directly.
  This Ruby was built for #{RbConfig::CONFIG["target_os"]}.
MESSAGE

FOLDERS = %w[engine binding].freeze

# Ruby's own flags carry what its distribution wanted (-O2, hardening); of two flags the later wins.
# Its warning list goes as a whole, because it is tuned to Ruby's sources and not to ours.
$warnflags = ""
$CFLAGS << " -std=gnu11 -O3 -g -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter"
$CFLAGS << " -Werror" if ENV["RINGSPUN_WERROR"]

# gnu11 alone does not declare pipe2, accept4 and the like. Ruby's config.h would, but the engine never sees it.
$CPPFLAGS << " -D_GNU_SOURCE -I$(srcdir)"

# The engine's functions are small and the binding calls several of them per switch: inlining across files pays.
# A sanitizer's report is easier to read without it.
if (sanitizer = ENV["RINGSPUN_SANITIZE"])
  extra = " -fsanitize=#{sanitizer} -fno-omit-frame-pointer"
elsif try_link("int main(void) { return 0; }", "-flto=auto")
  extra = " -flto=auto"
end
$CFLAGS << extra.to_s
$DLDFLAGS << extra.to_s

# Both folders may have a file of the same name, so the objects carry the folder's name.
objects = FOLDERS.to_h do |folder|
  sources = Dir[File.join($srcdir, folder, "*.c")].map { |path| File.basename(path) }.sort
  [folder, sources.map { |source| "#{folder}-#{source.delete_suffix(".c")}.#{$OBJEXT}" }]
end
$objs = objects.values.flatten
$srcs = []

abort "ringspun: no C source under #{$srcdir}/{#{FOLDERS.join(",")}}" if $objs.empty?

create_makefile("ringspun/native")

# mkmf knows one source folder. A pattern rule per folder is the whole addition. Every object depends on every
# header: a full build takes seconds, and a stale object in an engine with shared structs takes an afternoon.
File.open("Makefile", "a") do |makefile|
  FOLDERS.each do |folder|
    makefile.puts <<~MAKE

      #{folder}-%.#{$OBJEXT}: $(srcdir)/#{folder}/%.c
      \t$(ECHO) compiling #{folder}/$(<F)
      \t$(Q) $(CC) $(INCFLAGS) $(CPPFLAGS) $(CFLAGS) $(COUTFLAG)$@ -c $(CSRCFLAG)$<
    MAKE
  end
  makefile.puts "\n$(OBJS): Makefile $(wildcard $(srcdir)/*.h #{FOLDERS.map { "$(srcdir)/#{_1}/*.h" }.join(" ")})"
end
