# frozen_string_literal: true

require "test_helper"
require "support/servers"

# The tests' own servers: none outlives the process that has started it, however that ends.
class ServersTest < Minitest::Test
  include AnyBackend

  START = <<~'RUBY'
    require "minitest"
    require "support/servers"
    include Servers::Redis
    UNIXSocket.open(redis_path) { |socket| socket.write("PING\r\n") && puts(socket.gets) }
    puts Servers.redis.folder
    $stdout.flush
  RUBY

  ENDINGS = { "exit!(true)" => true, "Process.kill(:KILL, Process.pid)" => nil, "Servers.stop && exit!(true)" => true }.freeze

  ENDINGS.each do |ending, success|
    define_method("test_a_server_and_its_folder_are_gone_after_#{ending}") do
      answer = ruby_child("#{START}\n#{ending}", env: { "RUBYOPT" => "-rbundler/setup" })
      assert_equal ["", success], [answer.err, answer.status.success?]
      pong, folder = answer.out.lines(chomp: true)
      assert_equal ["+PONG", false], [pong, File.exist?(folder)]
    end
  end
end
