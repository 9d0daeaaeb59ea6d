# frozen_string_literal: true

# Puma in cluster mode, with four threads in each process.

require "bench/computing"
require "puma"
require "puma/configuration"
require "puma/launcher"

path, processes, ready = ARGV
answer = lambda do |_env|
  [200, { "content-type" => "text/plain" }, [Bench::Computing.once.to_s]]
end
configuration = Puma::Configuration.new do |config|
  config.bind("unix://#{path}")
  config.workers(Integer(processes))
  config.threads(4, 4)
  config.quiet
  config.app(answer)
  config.before_worker_boot { IO.for_fd(Integer(ready)).syswrite(".") }
end
Puma::Launcher.new(configuration).run
