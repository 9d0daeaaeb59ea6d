# frozen_string_literal: true

# mruby with our gem, for the tests and the bench, see rakelib/mruby.rake.
MRuby::Lockfile.disable

MRuby::Build.new do |conf|
  conf.toolchain :gcc
  conf.gembox "default"
  conf.gem File.expand_path("../..", __dir__)
  flags = ENV.fetch("RINGSPUN_MRUBY_FLAGS").split
  conf.cc.flags << flags
  conf.linker.flags << flags.grep(/\A-fsanitize/)
end
