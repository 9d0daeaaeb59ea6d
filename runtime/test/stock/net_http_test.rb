# frozen_string_literal: true

require "test_helper"
require "net/http"
require "open-uri"
require "support/certificate"
require "support/stock"

# Net::HTTP and open-uri, with a server in strands of the same run: a client that held the thread would wait for ever.
class StockNetHTTPTest < Minitest::Test
  include Stock

  # Without the proxies of the environment.
  def http(port, **options)
    Net::HTTP.new("127.0.0.1", port, nil).tap { |http| options.each { |name, value| http.public_send("#{name}=", value) } }
  end

  def test_a_get_that_waits_for_its_answer
    asked, answers = Thread::Queue.new, Thread::Queue.new
    Ringspun.run do
      http_server(->(request) { asked.push(request) && answers.pop }) do |port|
        getting = machine.spin { http(port).get("/path").body }
        assert_equal "GET /path HTTP/1.1", asked.pop
        assert_equal :parked, getting.state
        answers << "the body"
        assert_equal "the body", getting.await
      end
    end
  end

  def test_many_at_once
    together = Ringspun::Barrier.new(40)
    Ringspun.run do
      http_server(->(request) { together.wait.then { request[/\d+/] } }) do |port|
        bodies = Array.new(40) { |i| machine.spin { http(port).get("/#{i}").body } }
        assert_equal Array.new(40, &:to_s), machine.await(*bodies)
      end
    end
  end

  def test_keep_alive
    connections = 0
    count = ->(socket) { socket.tap { connections += 1 } }
    Ringspun.run do
      http_server(->(request) { request[%r{/\w*}] }, wrap: count) do |port|
        strands = Array.new(3) do |i|
          machine.spin do
            http(port).start { |client| Array.new(5) { |turn| client.get("/#{i}x#{turn}").body } }
          end
        end
        assert_equal(Array.new(3) { |i| Array.new(5) { |turn| "/#{i}x#{turn}" } }, machine.await(*strands))
      end
    end
    assert_equal 3, connections
  end

  def test_a_post_of_many_bytes_in_pieces
    bytes = Random.new(5).bytes(400_000)
    listener = TCPServer.new("127.0.0.1", 0)
    Ringspun.run do
      serving = parked do
        connection = listener.accept
        head = connection.gets("\r\n\r\n")
        connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        body = connection.read(head[/Content-Length: (\d+)/i, 1].to_i)
        body.scan(/.{1,1000}/mn) { |piece| connection.write("#{piece.bytesize.to_s(16)}\r\n", piece, "\r\n") }
        connection.write("0\r\n\r\n")
        connection.close
      end
      pieces = []
      request = Net::HTTP::Post.new("/", "Content-Type" => "text/plain").tap { |post| post.body = bytes }
      http(listener.addr[1]).request(request) { |response| response.read_body { |piece| pieces << piece } }
      serving.join
      assert_same_bytes bytes, pieces.join
      assert_operator pieces.size, :>, 1
    end
  ensure
    listener.close
  end

  def test_read_timeout
    asked = Thread::Queue.new
    Ringspun.run do
      http_server(->(request) { asked.push(request) && sleep }) do |port|
        getting = machine.spin { http(port, read_timeout: 0.05, max_retries: 0).get("/") }
        asked.pop # of a strand that the wait has let go on
        assert_ends_with Net::ReadTimeout, getting
      end
    end
  end

  def test_open_timeout
    Ringspun.run do
      with_full_listener { |port| assert_ends_with Net::OpenTimeout, parked { http(port, open_timeout: 0.05).get("/") } }
    end
  end

  def test_tls
    asked, answers = Thread::Queue.new, Thread::Queue.new
    Ringspun.run do
      http_server(->(request) { asked.push(request) && answers.pop }, wrap: method(:accept_tls)) do |port|
        getting = machine.spin { http(port, use_ssl: true, cert_store: Certificate.store).get("/secret").body }
        assert_equal "GET /secret HTTP/1.1", asked.pop
        until_parked(getting)
        answers << "told"
        assert_equal "told", getting.await
      end
    end
  end

  def test_tls_with_keep_alive_at_many
    together = Ringspun::Barrier.new(8)
    Ringspun.run do
      http_server(->(request) { together.wait.then { request[%r{/\w+}] } }, wrap: method(:accept_tls)) do |port|
        strands = Array.new(8) do |i|
          machine.spin do
            http(port, use_ssl: true, cert_store: Certificate.store).start do |client|
              Array.new(3) { |turn| client.get("/#{i}x#{turn}").body }
            end
          end
        end
        assert_equal(Array.new(8) { |i| Array.new(3) { |turn| "/#{i}x#{turn}" } }, machine.await(*strands))
      end
    end
  end

  def test_open_uri
    asked, answers = Thread::Queue.new, Thread::Queue.new
    Ringspun.run do
      http_server(->(request) { asked.push(request) && answers.pop }) do |port|
        reading = machine.spin { URI("http://127.0.0.1:#{port}/page").open(proxy: nil) { |page| [page.status, page.read] } }
        assert_equal "GET /page HTTP/1.1", asked.pop
        assert_equal :parked, reading.state
        answers << ("long " * 10_000) # into a Tempfile of open-uri's
        assert_equal [%w[200 OK], "long " * 10_000], reading.await
      end
    end
  end

  private

  def accept_tls(socket)
    OpenSSL::SSL::SSLSocket.new(socket, Certificate.server_context).tap { |tls| tls.sync_close = true }.accept
  end
end
