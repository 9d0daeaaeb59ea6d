# frozen_string_literal: true

# The engine is compiled from where it lies: there is one, and CRuby's binding has the same.
MRuby::Gem::Specification.new("mruby-ringspun") do |spec|
  spec.license = "MIT"
  spec.author = "The Ringspun authors"
  spec.summary = "Concurrent procs, scopes and I/O on io_uring or epoll: thousands of fibers that wait at once"
  %w[class-ext enum-ext fiber metaprog method object-ext proc-ext string-ext].each do |name|
    spec.add_dependency "mruby-#{name}", core: "mruby-#{name}"
  end
  # Their errors and IO objects are used where the build has these, which is asked when the gem begins: so they begin before it.
  %w[mruby-errno mruby-io mruby-socket].each do |name|
    spec.add_dependency(name, core: name) if build.gems.any? { |gem| gem.name == name }
  end

  engine = File.expand_path("../engine/src", __dir__)
  sources = Dir[File.join(engine, "**", "*.c")].sort
  raise "mruby-ringspun: no C source in #{engine}" if sources.empty?

  cc.flags << "-std=gnu11"
  if cc.flags.flatten.include?("-Os") # a build for size stays one
    # Only C++ exceptions unwind a stack by tables, and these are a fifth of the text.
    cc.flags << "-fno-asynchronous-unwind-tables" unless cc.defines.flatten.include?("MRB_USE_CXX_EXCEPTION")
  else
    cc.flags << "-O3"
  end
  cc.defines << "_GNU_SOURCE"
  cc.include_paths << File.expand_path("../engine/include", __dir__)
  engine_cc = cc.clone # what the binding does not see of the engine
  engine_cc.include_paths << engine
  linker.libraries << "pthread"
  exts = [build.exts.object]
  # Symbols that are known before: mruby 3 can do without, and says whether it does.
  exts << build.exts.presym_preprocessed if !build.respond_to?(:presym_enabled?) || build.presym_enabled?
  exts.each { |ext| engine_cc.define_rules("#{build_dir}/engine", engine, ext) }
  spec.objs += sources.map { |source| source.delete_suffix(".c").sub(engine, "#{build_dir}/engine") + build.exts.object }
  # mruby takes those in src/ itself, and not those in folders there: the rooms of the binding.
  spec.objs += Dir[File.join(__dir__, "src/*/**/*.c")].sort.map do |source|
    source.delete_suffix(".c").sub(__dir__, build_dir) + build.exts.object
  end
end
