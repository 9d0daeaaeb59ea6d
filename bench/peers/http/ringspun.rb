# frozen_string_literal: true

# Ours: one process, with the limits and clocks that it has by itself. BENCH_LOG names a file for its access log.
#
#   ruby ringspun.rb PORT

require "ringspun/http"
require_relative "app"

# @return [#call] the Rails application, which has Rack
def rails
  require "rack"
  Rack::Builder.parse_file(File.join(__dir__, "rails/config.ru"))
end

app = ENV.fetch("BENCH_WORK") == "up" ? rails : BenchApp.asked
log = ENV["BENCH_LOG"] && Ringspun::HTTP::AccessLog.new(:combined, to: ENV["BENCH_LOG"])
# More connections than by itself, for one table has 10,000 and a few.
options = { max_connections: 16_384, access_log: log }
Ringspun.run { Ringspun::HTTP.listen(app, "127.0.0.1", Integer(ARGV.fetch(0)), **options).wait }
