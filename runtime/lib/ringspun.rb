# frozen_string_literal: true

require_relative "ringspun/version"

# Fibers, spun on a ring: strands, scopes and synchronisation on a C engine.
module Ringspun
  # A checkout builds one extension per Ruby beside each other; an installed gem has just its own.
  built = File.join(__dir__, "ringspun", RUBY_VERSION[/\d+\.\d+/], "native.so")
  require File.exist?(built) ? built : "ringspun/native"
end

module Ringspun
  # Where `ringspun.h` lies, the C API for other extensions.
  #
  # @return [String]
  # @since 0.1.0
  def self.include_dir = File.expand_path("../ext/ringspun", __dir__)
end

require_relative "ringspun/errors"
require_relative "ringspun/machine"
require_relative "ringspun/cluster"
require_relative "ringspun/concurrent_proc"
require_relative "ringspun/connect"
require_relative "ringspun/core_methods"
require_relative "ringspun/datagram"
require_relative "ringspun/files"
require_relative "ringspun/inspector"
require_relative "ringspun/offload"
require_relative "ringspun/processes"
require_relative "ringspun/refinements"
require_relative "ringspun/run"
require_relative "ringspun/server"
require_relative "ringspun/signals"
require_relative "ringspun/simulation"
require_relative "ringspun/stream"
require_relative "ringspun/tls"
require_relative "ringspun/watch"
