# frozen_string_literal: true

# One sample of one contender, in a process of its own, so that neither the garbage nor the scheduler of another one affects it.
# Bench::Sampler starts it. The answer goes to descriptor 3, for a contender may print.
#
#   ruby child.rb sample TABLE_FILE CONTENDER SIZE_AS_JSON WARM_UP_SIZE_AS_JSON
#   ruby child.rb probe

$LOAD_PATH.unshift(File.expand_path("lib", __dir__))

require "bench/child"

answer = IO.for_fd(3, "w")
answer.close_on_exec = true # its end is that of the sample, whoever outlives it
answer.write(JSON.generate(Bench::Child.new(ARGV).answer))
answer.close
