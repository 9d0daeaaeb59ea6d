# frozen_string_literal: true

require "mkmf"

# For the extconf.rb of this gem, and of our gems that are built on its C API: their sources lie in a folder for each room.

def use_our_flags
  # Ruby's own flags carry what its distribution wanted (-O2, hardening); of two flags the later wins.
  # Its warning list goes as a whole, because it is tuned to Ruby's sources and not to ours.
  $warnflags = ""
  $CFLAGS << " -std=gnu11 -O3 -g -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter"
  $CFLAGS << " -Werror" if ENV["RINGSPUN_WERROR"]
  # gnu11 alone does not declare pipe2, accept4 and the like. Ruby's config.h would, but the engine never sees it.
  $CPPFLAGS << " -D_GNU_SOURCE -I$(srcdir)"
  compile_and_link_with(" -fsanitize=#{ENV["RINGSPUN_SANITIZE"]} -fno-omit-frame-pointer") if ENV["RINGSPUN_SANITIZE"]
end

def compile_and_link_with(flags)
  $CFLAGS << flags
  $DLDFLAGS << flags
end

# Folders may have files of the same name, so the objects carry the folder's name.
def object_prefix(folder) = folder.tr("/", "-")

def objects_in(folders)
  objects = folders.to_h do |folder|
    sources = Dir[File.join($srcdir, folder, "*.c")].map { |path| File.basename(path, ".c") }.sort
    [folder, sources.map { |source| "#{object_prefix(folder)}-#{source}.#{$OBJEXT}" }]
  end
  empty = objects.select { |_, names| names.empty? }.keys
  abort "ringspun: no C source in #{empty.join(", ")} of #{$srcdir}" if empty.any?

  objects.values.flatten
end

# @param target [String] of the library
# @param folders [Array<String>] those of all rooms
# @param warned [Array<String>] those that include Ruby's headers, for `make warnings`
# @param headers [Array<String>] folders that have none but headers
# @param own [Hash{String => String}] flags of the compiler for a folder alone
def create_rooms_makefile(target, folders, warned: folders, headers: [], own: {})
  $objs = objects_in(folders)
  $srcs = []
  # RubyGems builds in the sources' own folder, and leaves all objects there beside the two copies of the library that it
  # installs. Whoever debugs the engine does so in a clone. The names of functions stay, for Ruby's crash report shows them.
  for_a_gem = File.realpath($srcdir) == Dir.pwd
  $DLDFLAGS << " -Wl,--strip-debug" if for_a_gem
  create_makefile(target)
  File.open("Makefile", "a") do |makefile|
    makefile.puts rules_of_rooms(folders, warned, headers, own)
    # Comes last, when the library has been copied.
    makefile.puts "\ninstall:\n\t$(Q) $(RM) $(OBJS) $(DLLIB)" if for_a_gem
  end
end

# mkmf knows one source folder. A pattern rule per folder is the whole addition. Every object depends on every
# header: a full build takes seconds, and a stale object in an engine with shared structs takes an afternoon.
def rules_of_rooms(folders, warned, headers, own)
  compile = "$(Q) $(CC) $(INCFLAGS) $(CPPFLAGS) $(CFLAGS)"
  rules = folders.map do |folder|
    <<~MAKE

      #{object_prefix(folder)}-%.#{$OBJEXT}: $(srcdir)/#{folder}/%.c
      \t$(ECHO) compiling #{folder}/$(<F)
      \t#{[compile, *own[folder]].join(" ")} $(COUTFLAG)$@ -c $(CSRCFLAG)$<
    MAKE
  end
  # A new Ruby deprecates what it has, and other compilers warn of more. The commands are those of the build, so that ccache has
  # kept, where it is, what the compiler said then. With -Werror or -fsyntax-only the compiler would be asked again.
  [*rules, <<~MAKE]

    $(OBJS): Makefile $(wildcard $(srcdir)/*.h #{[*folders, *headers].map { |folder| "$(srcdir)/#{folder}/*.h" }.join(" ")})

    warnings:
    \t$(Q) failed=; for file in $(wildcard #{warned.map { |folder| "$(srcdir)/#{folder}/*.c" }.join(" ")}); do \\
    \t  said=$$(#{compile.delete_prefix("$(Q) ")} $(COUTFLAG)warned.$(OBJEXT) -c $(CSRCFLAG)$$file 2>&1) && test -z "$$said" || \\
    \t    { failed=1; printf '%s\\n' "$$said"; }; \\
    \tdone; $(RM) warned.$(OBJEXT); test -z "$$failed"
  MAKE
end
