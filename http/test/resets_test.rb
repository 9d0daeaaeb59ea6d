# frozen_string_literal: true

require "http_helper"
require "support/certificate"

# Clients that leave in the middle of something, by a close and by a reset: the strand of each ends, nothing is told, and nothing
# is left, for which every test is looked at.
class HTTPResetsTest < Minitest::Test
  include OnServer

  APP = lambda do |env|
    case env["PATH_INFO"]
    when "/read" then [200, {}, [env["rack.input"].read.to_s]]
    when "/much" then [200, {}, ["x" * 20_000_000]]
    when "/pieces" then [200, {}, ->(output) { loop { output.write("x" * 50_000) } }]
    when "/events" then HTTP::SSE.answer(env, heartbeat: nil) { Ringspun::Machine.current.sleep }
    when "/waits" then env["ringspun.peer"].until_gone { Ringspun::Machine.current.sleep }
    else [200, {}, ["hello\n"]]
    end
  end

  # What the client sends, and what it reads then.
  STATES = {
    "that has sent nothing" => ["", nil],
    "that is idle" => ["GET / HTTP/1.1\r\nhost: a\r\n\r\n", ->(client) { client.answer }],
    "in the middle of a head" => ["GET / HTTP/1.1\r\nhos", nil],
    "in the middle of a body" => ["POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 90000\r\n\r\nabc", nil],
    "in the middle of a chunk" => ["POST /read HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n9\r\nabc", nil],
    "that waits for a hundred" => ["POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n",
                                   ->(client) { client.answer }],
    "in the middle of a long answer" => ["GET /much HTTP/1.1\r\nhost: a\r\n\r\n", ->(client) { client.read(100_000) }],
    "in the middle of an answer without end" => ["GET /pieces HTTP/1.1\r\nhost: a\r\n\r\n", ->(client) { client.read(100_000) }],
    "of events" => ["GET /events HTTP/1.1\r\nhost: a\r\n\r\n", ->(client) { client.read(15) }],
    "whose program waits" => ["GET /waits HTTP/1.1\r\nhost: a\r\n\r\n", nil],
    "that is refused" => ["GET / HTTP/1.1\r\n\r\n", ->(client) { client.read(15) }]
  }.freeze

  # As long as it waits in the kernel for what comes, the stream knows nothing.
  def test_clients_with_tls_that_leave_and_are_left
    lost = []
    Ringspun.run do
      server = HTTP.listen(APP, "127.0.0.1", 0, tls: Certificate.server_context, limits: { leaving: 0.01 }, # must pass
                                                on_error: ->(error, _) { lost << error })
      clients = Array.new(3) { Ringspun.connect_tcp("127.0.0.1", server.port, tls: Certificate.client_context) }
      clients[0].write("GET /events HTTP/1.1\r\nhost: a\r\n\r\n")
      clients[1].write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
      clients.first(2).each { |client| client.read(15) }
      clients[0].close
      assert_equal 0, server.stop(within: 30)
      clients.each(&:close)
    end
    assert_empty lost
  end

  # A client behind whose request there is a reset has no address any more, and must not be taken for one of this host.
  def a_request_and_a_reset_behind_it(request, **)
    seen = []
    serving(->(env) { [200, {}, [seen.push(env["PATH_INFO"]).last]] }, **) do |connect, server|
      Fiber.blocking do
        socket = Socket.new(:INET, :STREAM)
        socket.connect_nonblock(server.address, exception: false)
        socket.write_nonblock(request)
        socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
        socket.close
      end
      client = connect.call # the one before is accepted first
      client.get("/later")
      assert_equal "/later", client.answer.body
    end
    assert_equal ["/later"], seen
  end

  def test_a_reset_behind_the_first_request
    a_request_and_a_reset_behind_it("GET /reset HTTP/1.1\r\nhost: a\r\n\r\n")
  end

  def test_a_reset_behind_a_header_of_proxies_at_unix_sockets
    a_request_and_a_reset_behind_it("PROXY TCP4 10.1.2.3 10.4.5.6 1000 80\r\nGET /reset HTTP/1.1\r\nhost: a\r\n\r\n",
                                    proxy_protocol: "unix")
  end

  { "" => false, "_with_tls" => true }.to_a.product(%i[close reset], STATES.to_a).each do |(with, tls), how, (name, state)|
    define_method("test_a_#{how}_of_a_client#{with}_#{name.tr(" ", "_")}") do
      request, reads = state
      serving(APP, **(tls ? { tls: Certificate.server_context } : {})) do |connect, server|
        client = connect.call
        client.send(request)
        reads&.call(client)
        client.public_send(how)
        assert_equal 0, server.stop(within: 30)
        assert_equal "", @errors.string
      end
    end
  end
end
