# frozen_string_literal: true

# The gem `concurrently` 1.2.0, which our drop-in takes the name of. The last release is from before Ruby 3, where a method no
# longer hands its block to a `Proc.new` within it: these two do it in so many words, and nothing else is changed.
#
# Beside Ringspun in one load path, `require "concurrently"` finds whichever comes first. So the gem's own folder is put there,
# and what has been loaded is looked at: a bench of the drop-in against itself would be a fine result.

raise "the gem concurrently and Ringspun do not go together in one process" if defined?(Ringspun::Machine)

require "bundler/setup" # knows where it is
gem "concurrently"
specification = Gem.loaded_specs.fetch("concurrently")
$LOAD_PATH.unshift(*specification.full_require_paths)
require "concurrently"

where = Concurrently::Proc.instance_method(:call_nonblock).source_location&.first.to_s
unless where.start_with?("#{specification.full_gem_path}/")
  raise "expected the gem concurrently in #{specification.full_gem_path}, found #{where}"
end

# What Ruby 3 takes from it.
Kernel.prepend(Module.new do
  private

  def concurrent_proc(evaluation_class = Concurrently::Proc::Evaluation, &) = Concurrently::Proc.new(evaluation_class, &)

  def concurrently(*, &) = Concurrently::Proc.new(&).call_detached(*)
end)
