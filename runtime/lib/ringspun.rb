# frozen_string_literal: true

require_relative "ringspun/version"

# Fibers, spun on a ring: strands, scopes and synchronisation on a C engine.
module Ringspun
  # A checkout has one extension for each Ruby; an installed gem has only its own.
  built = File.join(__dir__, "ringspun", RUBY_VERSION[/\d+\.\d+/], "native.so")
  begin
    require File.exist?(built) ? built : "ringspun/native"
  rescue LoadError => error
    raise unless error.path == "ringspun/native" # it was found, and could not be loaded

    setup = File.expand_path("../../bin/setup", __dir__)
    advice = File.exist?(setup) ? <<~CLONE : "Build it by `gem pristine ringspun`, with the `gem` of that Ruby."
      Build it by `RINGSPUN_RUBY=#{RbConfig.ruby} #{setup}`.
      Bundler builds it when a Gemfile has this gem by `git:`; by `path:` it does not.
    CLONE
    raise LoadError, "The C extension of ringspun is not built for ruby #{RUBY_VERSION}: there is no #{built}, " \
                     "and no ringspun/native in the load path.\n#{advice.chomp}"
  end
end

module Ringspun
  # The folder of `ringspun.h`, the C API for other extensions.
  #
  # @return [String]
  # @since 0.1.0
  def self.include_dir = File.expand_path("../ext/ringspun", __dir__)
end

require_relative "ringspun/errors"
require_relative "ringspun/seconds"
require_relative "ringspun/short_lock"
require_relative "ringspun/warnings"
require_relative "ringspun/machine"
require_relative "ringspun/cluster"
require_relative "ringspun/concurrent_proc"
require_relative "ringspun/net"
require_relative "ringspun/connect"
require_relative "ringspun/core_methods"
require_relative "ringspun/cruby"
require_relative "ringspun/datagram"
require_relative "ringspun/files"
require_relative "ringspun/inspector"
require_relative "ringspun/log_file"
require_relative "ringspun/offload"
require_relative "ringspun/processes"
require_relative "ringspun/refinements"
require_relative "ringspun/run"
require_relative "ringspun/scheduler"
require_relative "ringspun/server"
require_relative "ringspun/signals"
require_relative "ringspun/simulation"
require_relative "ringspun/stream"
require_relative "ringspun/suggestion"
require_relative "ringspun/tls"
require_relative "ringspun/watch"
require_relative "ringspun/hints"
require_relative "ringspun/rails_isolation" if defined?(Rails::Railtie)
