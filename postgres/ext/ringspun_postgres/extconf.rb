# frozen_string_literal: true

require "mkmf"
require "ringspun"

FOLDERS = %w[codec client].freeze

$warnflags = ""
$CFLAGS << " -std=gnu11 -O3 -g -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter"
$CFLAGS << " -Werror" if ENV["RINGSPUN_WERROR"]
if (sanitizer = ENV["RINGSPUN_SANITIZE"])
  extra = " -fsanitize=#{sanitizer} -fno-omit-frame-pointer"
  $CFLAGS << extra
  $DLDFLAGS << extra
end
$CPPFLAGS << " -D_GNU_SOURCE -I$(srcdir) -I#{Ringspun.include_dir}"

objects = FOLDERS.to_h do |folder|
  sources = Dir[File.join($srcdir, folder, "*.c")].map { |path| File.basename(path) }.sort
  [folder, sources.map { |source| "#{folder}-#{source.delete_suffix(".c")}.#{$OBJEXT}" }]
end
empty = objects.select { |_, names| names.empty? }.keys
abort "ringspun-postgres: no C source in #{empty.join(", ")} of #{$srcdir}" if empty.any?

$objs = objects.values.flatten
$srcs = []

# In a gem's folder nothing stays but the library, as the runtime's extconf.rb has it.
for_a_gem = File.realpath($srcdir) == Dir.pwd
$DLDFLAGS << " -Wl,--strip-debug" if for_a_gem

create_makefile("ringspun/postgres_native")

# mkmf knows one source folder: a pattern rule for each, as the runtime's extconf.rb has it.
File.open("Makefile", "a") do |makefile|
  FOLDERS.each do |folder|
    makefile.puts <<~MAKE

      #{folder}-%.#{$OBJEXT}: $(srcdir)/#{folder}/%.c
      \t$(ECHO) compiling #{folder}/$(<F)
      \t$(Q) $(CC) $(INCFLAGS) $(CPPFLAGS) $(CFLAGS) $(COUTFLAG)$@ -c $(CSRCFLAG)$<
    MAKE
  end
  makefile.puts "\nwarnings:\n\t$(Q) $(CC) $(INCFLAGS) $(CPPFLAGS) $(CFLAGS) -Werror -fsyntax-only $(wildcard $(srcdir)/*/*.c)"
  makefile.puts "\n$(OBJS): Makefile $(wildcard #{FOLDERS.map { "$(srcdir)/#{_1}/*.h" }.join(" ")})"
  makefile.puts "\ninstall:\n\t$(Q) $(RM) $(OBJS) $(DLLIB)" if for_a_gem
end
