# frozen_string_literal: true

# The gem `concurrently` 1.2.0, whose name our drop-in has. Its last release is older than Ruby 3, in which `Proc.new` without a
# block no longer takes that of the method: two methods pass it explicitly here, and nothing else is changed.
#
# `require "concurrently"` finds the gem or our drop-in, whichever comes first in the load path. So the gem's folder is put first,
# and the loaded file is checked: else the bench might measure the drop-in against itself.

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
