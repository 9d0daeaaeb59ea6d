# frozen_string_literal: true

# SHA-256 sums of files, a few files at once. The files are read by worker threads while sums are computed.
#
#   bin/bundle exec ruby examples/checksums.rb [FILE...]
#
# Prints for each file, in the order given, and without an argument for the examples:
#   ...  chat_server.rb
#   ...  checksums.rb
#   ...  cluster_server.rb
#   ...  crawler.rb
#   ...  echo_server.rb
#   ...  fastest_mirror.rb
#   ...  file_tail.rb
#   ...  find_a_bug.rb
#   ...  http_events.rb
#   ...  http_json.rb
#   ...  http_proxy.rb
#   ...  http_upload.rb
#   ...  jobs_without_server.rb
#   ...  kv_server.rb
#   ...  mailer_jobs.rb
#   ...  pipeline.rb
#   ...  port_forwarder.rb
#   ...  postgres.rb

require "digest"
require "ringspun"

AT_ONCE = 4
CHUNK = 256 * 1024

def checksum(machine, path)
  file = machine.open(path)
  digest = Digest::SHA256.new
  buffer = +""
  digest << buffer while machine.read(file, buffer, CHUNK) > 0
  digest.hexdigest
ensure
  machine.close(file) if file
end

paths = ARGV.empty? ? Dir[File.join(__dir__, "*.rb")].sort : ARGV

Ringspun.run do |machine|
  # However many files there are, only so many are open.
  semaphore = Ringspun::Semaphore.new(AT_ONCE)
  sums = paths.map { |path| machine.spin { semaphore.hold { checksum(machine, path) } } }
  paths.zip(sums) do |path, sum|
    puts "#{sum.await}  #{File.basename(path)}"
  rescue SystemCallError => error
    warn error.message
  end
end
