# frozen_string_literal: true

# The gem io-stream, in tasks of Async.

require "async"
require "io/stream"
