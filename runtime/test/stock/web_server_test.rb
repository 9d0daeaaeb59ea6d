# frozen_string_literal: true

require "test_helper"
require "net/http"
require "stringio"
require "support/stock"
require "webrick"

begin
  verbose, $VERBOSE = $VERBOSE, nil
  require "puma"
  require "puma/server"
ensure
  $VERBOSE = verbose
end

# WEBrick and Puma, in processes of their own and in a strand of the run.
class StockWebServerTest < Minitest::Test
  include Stock

  { webrick: WEBRICK, puma: PUMA }.each do |name, code|
    define_method("test_two_requests_that_need_each_other_to_#{name}") do
      server_process(code) do |port|
        Ringspun.run do
          asking = Array.new(2) { machine.spin { get(port, "/meet") } }
          assert_equal %w[met met], machine.await(*asking)
        end
      end
    end

    define_method("test_many_requests_to_#{name}") do
      server_process(code) do |port|
        Ringspun.run do
          asking = Array.new(30) { |i| machine.spin { get(port, "/#{i}") } }
          assert_equal Array.new(30) { |i| "you asked for /#{i}" }, machine.await(*asking)
        end
      end
    end

    define_method("test_connections_to_#{name}_that_are_kept") do
      server_process(code) do |port|
        Ringspun.run do
          asking = Array.new(2) do
            machine.spin { http(port).start { |client| Array.new(3) { client.get("/meet").body } } }
          end
          assert_equal [%w[met met met]] * 2, machine.await(*asking)
        end
      end
    end
  end

  # --- in a strand ---

  def test_webrick_in_a_strand
    Ringspun.run do
      log = WEBrick::Log.new(StringIO.new)
      server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: 0, Logger: log, AccessLog: [])
      answers = Thread::Queue.new
      server.mount_proc("/") { |request, response| response.body = "#{request.path} #{answers.pop}" }
      serving = parked { server.start }
      port = server.listeners.first.addr[1]
      asking = Array.new(5) { |i| machine.spin { get(port, "/#{i}") } }
      until_parked(*asking)
      5.times { answers << "answered" }
      assert_equal Array.new(5) { |i| "/#{i} answered" }, machine.await(*asking)
      server.shutdown
      serving.join
    end
  end

  def test_puma_in_a_strand
    Ringspun.run do
      answers = Thread::Queue.new
      app = ->(env) { [200, {}, ["#{env["PATH_INFO"]} #{answers.pop}"]] }
      server = Puma::Server.new(app, nil, min_threads: 0, max_threads: 5, log_writer: Puma::LogWriter.null)
      port = server.add_tcp_listener("127.0.0.1", 0).addr[1]
      serving = parked { server.run(false) }
      asking = Array.new(5) { |i| machine.spin { get(port, "/#{i}") } }
      until_parked(*asking)
      5.times { answers << "answered" }
      assert_equal Array.new(5) { |i| "/#{i} answered" }, machine.await(*asking)
      server.stop
      serving.join
    end
  end

  private

  def http(port) = Net::HTTP.new("127.0.0.1", port, nil)
  def get(port, path) = http(port).get(path).body
end
