# frozen_string_literal: true

# mruby with our gem, for the tests and the bench, see rakelib/mruby.rake. With another build's compiler there
# are only the gems that the tests need, which takes a third of the time; in the build "alone" just ours, and what programs of the
# guide need themselves.
MRuby::Lockfile.disable

MRuby::Build.new do |conf|
  conf.toolchain :gcc
  if (mrbc = ENV["RINGSPUN_MRUBY_MRBC"])
    conf.mrbcfile = mrbc
    if ENV["MRUBY_BUILD_DIR"].end_with?("/alone")
      %w[enumerator hash-ext print].each { |gem| conf.gem core: "mruby-#{gem}" }
    else
      %w[stdlib stdlib-ext stdlib-io math metaprog].each { |box| conf.gembox box }
    end
    conf.gem core: "mruby-bin-mruby"
  else
    conf.gembox "default"
  end
  conf.gem File.expand_path("../..", __dir__)
  flags = ENV.fetch("RINGSPUN_MRUBY_FLAGS").split
  conf.cc.flags << flags
  conf.linker.flags << flags.grep(/\A-fsanitize/)
end
