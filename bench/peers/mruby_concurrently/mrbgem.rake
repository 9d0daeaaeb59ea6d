# frozen_string_literal: true

# The gem `concurrently` 1.2.0 for mruby, unchanged: the sources that it and `callbacks_attachable` bring for it. Their own
# mrbgem.rake files want to fetch more gems by git. mruby has a `Module#singleton_class?` by now, and `Poll` is in src/.
MRuby::Gem::Specification.new("mruby-concurrently") do |spec|
  spec.license = "Apache-2.0"
  spec.author = "Christopher Aue"
  spec.summary = "The gem concurrently, as the bench's peer"
  %w[array-ext class-ext enumerator fiber hash-ext io kernel-ext numeric-ext object-ext proc-ext time].each do |name|
    spec.add_dependency("mruby-#{name}", core: "mruby-#{name}")
  end

  spec.rbfiles = ENV.fetch("BENCH_CONCURRENTLY").split(File::PATH_SEPARATOR).flat_map do |gem|
    %w[ext/all ext/mruby lib/all lib/mruby].flat_map { |part| Dir["#{gem}/#{part}/**/*.rb"].sort }
  end
end
