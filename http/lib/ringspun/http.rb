# frozen_string_literal: true

require "ringspun"

module Ringspun
  # A server of HTTP/1.1 for Rack: each connection has a strand of its own, in which the program runs.
  #
  #   app = ->(env) { [200, { "content-type" => "text/plain" }, ["hello\n"]] }
  #   Ringspun.run { Ringspun::HTTP.listen(app, "127.0.0.1", 9292).wait }
  #
  # @since 0.1.0
  module HTTP
  end
end

require_relative "http/errors"
require_relative "http/telling"

# As of the runtime's own extension: a checkout has one per Ruby, an installed gem just its own.
built = File.expand_path("#{RUBY_VERSION[/\d+\.\d+/]}/http_native.so", __dir__)
require File.exist?(built) ? built : "ringspun/http_native"

require_relative "http/limits"
require_relative "http/input"
require_relative "http/spool"
require_relative "http/drain"
require_relative "http/peer"
require_relative "http/output"
require_relative "http/sse"
require_relative "http/hijack"
require_relative "http/reply"
require_relative "http/deadlines"
require_relative "http/frameworks"
require_relative "http/exchange"
require_relative "http/service"
require_relative "http/access_log"
require_relative "http/metrics"
require_relative "http/tracing"
require_relative "http/places"
require_relative "http/fresh_context"
require_relative "http/proxy_protocol"
require_relative "http/waiting"
require_relative "http/reception"
require_relative "http/serving"
require_relative "http/listen"

require_relative "http/restart_file"
require_relative "http/foreground"
require_relative "http/railtie" if defined?(Rails::Railtie)
