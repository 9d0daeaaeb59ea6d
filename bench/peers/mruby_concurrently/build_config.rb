# frozen_string_literal: true

# mruby with the gem concurrently, for the bench, see rakelib/mruby.rake.
MRuby::Lockfile.disable

MRuby::Build.new do |conf|
  conf.toolchain :gcc
  conf.gembox "default"
  conf.gem __dir__
end
