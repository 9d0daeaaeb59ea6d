# frozen_string_literal: true

# mruby with our gem, for the tests and the bench, see rakelib/mruby.rake. With another build's compiler there
# are only the gems that the tests need, which takes a third of the time.
MRuby::Lockfile.disable

MRuby::Build.new do |conf|
  conf.toolchain :gcc
  if (mrbc = ENV["RINGSPUN_MRUBY_MRBC"])
    conf.mrbcfile = mrbc
    %w[stdlib stdlib-ext stdlib-io metaprog].each { |box| conf.gembox box }
    conf.gem core: "mruby-bin-mruby"
  else
    conf.gembox "default"
  end
  conf.gem File.expand_path("../..", __dir__)
  flags = ENV.fetch("RINGSPUN_MRUBY_FLAGS").split
  conf.cc.flags << flags
  conf.linker.flags << flags.grep(/\A-fsanitize/)
end
