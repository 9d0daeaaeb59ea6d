# frozen_string_literal: true

# One sample of one contender, in a process of its own: neither the garbage of another contender nor a scheduler
# that it left behind may weigh on this one. Started by Bench::Sampler only; the answer goes to descriptor 3,
# because a contender is free to print.
#
#   ruby child.rb sample TABLE_FILE CONTENDER SIZE_AS_JSON WARM_UP_SIZE_AS_JSON
#   ruby child.rb probe

$LOAD_PATH.unshift(File.expand_path("lib", __dir__))

require "bench/child"

answer = IO.for_fd(3, "w")
answer.write(JSON.generate(Bench::Child.new(ARGV).answer))
answer.close
