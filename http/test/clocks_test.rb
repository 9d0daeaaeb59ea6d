# frozen_string_literal: true

require "http_helper"
require "support/on_simulation"
require "tempfile"

# What a client may be late with, by a clock that jumps. Each test ends with no strand, timer or descriptor left, as all do.
class HTTPClocksTest < Minitest::Test
  include OnServer
  include OnSimulation

  HELLO = ->(_env) { [200, { "content-type" => "text/plain" }, ["hello\n"]] }
  READS = ->(env) { [200, { "content-type" => "text/plain" }, [env["rack.input"].read.bytesize.to_s]] }
  POST = "POST / HTTP/1.1\r\nhost: a\r\n"
  # No test is about what a kernel does wrong, and each has its time to the second.
  def faults = false

  def machine = Ringspun::Machine.current

  # @return [Integer] seconds that the block has taken
  def seconds
    began = machine.now
    yield
    (machine.now - began).round
  end

  def test_a_connection_without_a_first_byte
    serving(HELLO) { |connect| assert_equal(30, seconds { assert connect.call.ended? }) }
  end

  def test_an_idle_connection
    serving(HELLO) do |connect|
      client = connect.call
      client.get("/")
      assert_equal "hello\n", client.answer.body
      assert_equal(65, seconds { assert client.ended? })
    end
  end

  def test_a_head_that_comes_slowly
    serving(HELLO) do |connect|
      client = connect.call
      answer = nil
      sender = Ringspun.spin { "GET / HTTP/1.1\r\nhost: a".each_char { |char| client.send(char) && machine.sleep(1) } }
      assert_equal(10, seconds { answer = client.answer })
      assert_equal [408, "close", "the head has not come in time\n"], [answer.status, answer["connection"], answer.body]
      sender.terminate
    end
  end

  def test_a_body_that_stops
    much = "x" * 0x8000
    ["content-length: 60000\r\n\r\n#{much}", "content-length: 200000\r\n\r\n#{much}",
     "transfer-encoding: chunked\r\n\r\n9000\r\n#{much}",
     "transfer-encoding: chunked\r\n\r\n8000\r\n#{much}\r\n0\r\nx: y\r\n"].each do |rest|
      serving(READS) do |connect|
        client = connect.call
        client.send(POST, rest)
        answer = nil
        assert_equal(30, seconds { answer = client.answer }, rest[0, 60])
        assert_equal [408, "close", "the body has not come in time\n"], [answer.status, answer["connection"], answer.body]
      end
    end
  end

  # How a body is framed: what stands before it, around a piece, and behind it.
  FRAMES = { "" => ["content-length: 30000\r\n\r\n", ->(piece) { piece }, ""],
             "_in_chunks" => ["transfer-encoding: chunked\r\n\r\n",
                              ->(piece) { "#{piece.bytesize.to_s(16)}\r\n#{piece}\r\n" }, "0\r\n\r\n"] }.freeze

  FRAMES.each do |name, (head, framed, last)|
    # 100 bytes a second come often enough, and are too few from the tenth second on.
    define_method(:"test_a_body#{name}_that_is_slower_than_its_rate") do
      serving(READS) do |connect|
        client = connect.call
        client.send(POST, head)
        sender = Ringspun.spin { loop { client.send(framed.call("x" * 100)) && machine.sleep(1) } }
        answer = nil
        assert_includes(10..13, seconds { answer = client.answer })
        assert_equal 408, answer.status
        sender.terminate
      end
    end

    define_method(:"test_a_body#{name}_that_is_as_fast_as_its_rate") do
      serving(READS) do |connect|
        client = connect.call
        client.send(POST, head)
        Ringspun.spin do
          50.times { client.send(framed.call("x" * 600)) && machine.sleep(1) }
          client.send(last)
        end
        assert_equal [200, "30000"], client.answer.to_a.values_at(0, 2)
      end
    end
  end

  def test_a_program_that_does_not_read_holds_the_client
    app = ->(env) { machine.sleep(20) && READS.call(env) }
    serving(app) do |connect|
      client = connect.call
      sent = 0
      client.send(POST, "content-length: 10000000\r\n\r\n")
      Ringspun.spin { 1000.times { client.send("x" * 10_000) && (sent += 10_000) } }
      machine.sleep(19)
      assert_includes 10_000..3_000_000, sent
      assert_equal [200, "10000000"], client.answer.to_a.values_at(0, 2)
    end
  end

  MUCH = "x" * 5_000_000
  ANSWERS = { "in one String" => [MUCH], "in pieces" => [MUCH.byteslice(0, 100_000)].cycle.take(50).each,
              "by a stream" => ->(output) { 500.times { output.write("x" * 10_000) } },
              "flushed" => ->(output) { 500.times { output.write("x" * 10_000) && output.flush } } }.freeze

  ANSWERS.each do |name, body|
    define_method(:"test_a_client_that_does_not_read_what_is_answered_#{name.tr(" ", "_")}") do
      ended = nil
      app = lambda do |env|
        env["rack.response_finished"] << ->(_env, _status, _headers, error) { ended = [machine.now, error.class, error.message] }
        [200, {}, body]
      end
      serving(app) do |connect, server|
        client = connect.call
        client.get("/")
        began = machine.now
        machine.sleep(1) until server.connections.zero?
        assert_includes 60..76, ended.first - began
        assert_equal [Ringspun::TimeoutError, "the client has taken nothing of the answer for 60.0 s"], ended.drop(1)
        assert_equal "", @errors.string
      end
    end
  end

  # It takes far longer than the limit in all, and never as long for any of it.
  def test_a_client_that_reads_slowly
    serving(->(_env) { [200, {}, [MUCH]] }) do |connect|
      client = connect.call
      client.get("/")
      bytes = 0
      taken = seconds do
        while bytes < MUCH.bytesize
          250.times { bytes += client.some(1000).bytesize if bytes < MUCH.bytesize }
          machine.sleep(50)
        end
      end
      assert_operator taken, :>, 500
      assert_includes MUCH.bytesize..MUCH.bytesize + 300, bytes
    end
  end

  # A file goes another way than other bodies, and with TLS yet another. The simulated kernel knows neither files of the real one
  # nor TLS: it has a file of its own, and the stream of the second way says that it has TLS.
  FileBody = Struct.new(:to_path) do
    def each = raise("it is sent as a file")
  end

  def serving_a_file(bytes, tls:, &)
    with_simulated_files { serve_a_file(bytes, tls, &) }
  end

  def serve_a_file(bytes, tls)
    Tempfile.create do |real|
      File.truncate(real, bytes)
      Ringspun::Stream.open(machine.open("/file", "w")) { |to| to.write("x" * bytes) }
      ended = []
      app = lambda do |env|
        pretend_tls(env["ringspun.peer"].instance_variable_get(:@stream)) if tls
        env["rack.response_finished"] << ->(*, error) { ended << [machine.now, error.class] }
        [200, {}, FileBody.new(real.path)]
      end
      serving(app) { |connect, server| yield connect.call.tap { |client| client.get("/", "connection: close") }, server, ended }
    end
  end

  def pretend_tls(stream) = { tls: true, plain?: false }.each { |name, value| stream.define_singleton_method(name) { value } }

  # In place of each file.
  def with_simulated_files
    machine = self.machine
    Ringspun::Stream.define_singleton_method(:new) do |io, **options|
      super(io.is_a?(File) ? machine.open("/file") : io, **options)
    end
    yield
  ensure
    Ringspun::Stream.singleton_class.remove_method(:new)
  end

  { "" => false, "_with_tls" => true }.each do |name, tls|
    define_method(:"test_a_client_that_does_not_read_a_file#{name}") do
      serving_a_file(5_000_000, tls:) do |_client, server, ended|
        began = machine.now
        machine.sleep(1) until server.connections.zero?
        assert_includes 60..76, ended[0][0] - began
        assert_equal [[Ringspun::TimeoutError], ""], [ended.map(&:last), @errors.string]
      end
    end

    # In the limit of 60 s it takes less than any buffer has, and always some. A stream of its own would take more at once.
    define_method(:"test_a_client_that_reads_a_file_slowly#{name}") do
      bytes = 400_000
      serving_a_file(bytes, tls:) do |client, _server, ended|
        socket = client.instance_variable_get(:@stream).__send__(:over)
        taken = 0
        while (count = machine.read(socket, +"", 10_000)).positive?
          taken += count
          machine.sleep(20)
        end
        assert_includes bytes..bytes + 300, taken
        assert_equal [[NilClass], ""], [ended.map(&:last), @errors.string]
      end
    end
  end

  # --- request_timeout ---

  def test_an_answer_that_does_not_come
    left = false
    app = lambda do |env|
      env["ringspun.scope"].spin { machine.sleep }
      machine.sleep
    ensure
      left = true if env["PATH_INFO"] == "/slow"
    end
    serving(app, request_timeout: 7) do |connect|
      client = connect.call
      client.get("/slow")
      answer = nil
      assert_equal(7, seconds { answer = client.answer })
      assert_equal [503, "1", true], [answer.status, answer["retry-after"], left]
      assert_equal "ringspun-http: GET /slow has no whole answer after 7 s, its request_timeout\n", @errors.string
    end
  end

  def test_an_answer_that_has_begun_and_does_not_end
    body = ->(output) { output.write("begun") && machine.sleep }
    told = nil
    app = lambda do |env|
      env["rack.response_finished"] << ->(*, error) { told = error }
      [200, {}, body]
    end
    serving(app, request_timeout: 7) do |connect|
      client = connect.call
      client.get("/")
      assert_raises(Ringspun::EndOfStreamError) { client.answer }
      assert_kind_of Ringspun::HTTP::RequestTimeoutError, told
      assert_match(/no whole answer after 7 s/, @errors.string)
    end
  end

  def test_a_request_timeout_by_route
    by_route = ->(env) { env["PATH_INFO"] == "/slow" ? nil : 7 }
    app = ->(_env) { machine.sleep(20) && HELLO.call(nil) }
    serving(app, request_timeout: by_route) do |connect|
      client = connect.call
      client.get("/slow")
      assert_equal 200, client.answer.status
      client.get("/")
      assert_equal 503, client.answer.status
    end
  end

  # The program's own deadline is its own business.
  def test_a_deadline_of_the_program_within_a_request_timeout
    app = lambda do |_env|
      machine.timeout(3) { machine.sleep }
    rescue Ringspun::TimeoutError
      [200, {}, ["late"]]
    end
    serving(app, request_timeout: 7) do |connect|
      client = connect.call
      client.get("/")
      assert_equal [200, "late"], client.answer.to_a.values_at(0, 2)
    end
  end

  # The client has all of its answer, and may have sent the next request already.
  def test_a_strand_that_goes_on_behind_an_answer
    app = lambda do |env|
      env["ringspun.scope"].spin { machine.sleep } if env["PATH_INFO"] == "/spins"
      HELLO.call(env)
    end
    serving(app, request_timeout: 7) do |connect|
      client = connect.call
      client.get("/spins")
      assert_equal([0, 200], [seconds { @first = client.answer }, @first.status])
      client.get("/")
      assert_equal([7, 200], [seconds { @second = client.answer }, @second.status])
      assert_match(/GET .spins has no whole answer after 7 s/, @errors.string)
    end
  end

  def test_a_program_that_cancels_the_scope_of_its_request
    app = ->(env) { env["ringspun.scope"].cancel && machine.sleep }
    serving(->(env) { app.call(env) || machine.sleep }, request_timeout: 7) do |connect|
      client = connect.call
      client.get("/")
      assert_equal 500, client.answer.status
      assert_match(/has cancelled the scope of its request/, @errors.string)
    end
  end

  # --- a stop ---

  def test_a_connection_without_a_request_when_the_server_stops
    serving(HELLO) do |connect, server|
      clients = [connect.call, connect.call]
      clients.first.get("/")
      clients.first.answer
      machine.sleep(1)
      assert_equal(5, seconds { assert_equal 0, server.stop(within: 30) })
      assert clients.all?(&:ended?)
    end
  end

  def test_a_request_that_is_on_its_way_when_the_server_stops
    serving(HELLO) do |connect, server|
      clients = [connect.call, connect.call]
      clients.first.get("/")
      clients.first.answer
      stops = Ringspun.spin { server.stop(within: 30) }
      machine.sleep(4)
      clients.each { |client| client.get("/") }
      clients.each do |client|
        answer = client.answer
        assert_equal [200, "close", true], [answer.status, answer["connection"], client.ended?]
      end
      assert_equal 0, stops.await
    end
  end

  def test_a_request_that_is_answered_when_the_server_stops
    gate = Ringspun::Condition.new
    app = ->(_env) { gate.wait && HELLO.call(nil) }
    serving(app) do |connect, server|
      client = connect.call
      client.get("/")
      machine.sleep(1)
      stops = Ringspun.spin { server.stop(within: 60) }
      machine.sleep(10)
      gate.broadcast
      assert_equal [200, "close"], [(answer = client.answer).status, answer["connection"]]
      assert_equal 0, stops.await
    end
  end

  # The head has gone out before the stop, and said nothing of a close.
  def test_an_answer_whose_head_has_promised_more
    gate = Ringspun::Condition.new
    slow = ->(output) { output.write("a") && gate.wait }
    app = ->(env) { env["PATH_INFO"] == "/slow" ? [200, {}, slow] : HELLO.call(nil) }
    serving(app) do |connect, server|
      client = connect.call
      client.get("/slow")
      machine.sleep(1)
      stops = Ringspun.spin { server.stop(within: 60) }
      machine.sleep(10)
      gate.broadcast
      assert_equal [nil, "a"], client.answer.then { |answer| [answer["connection"], answer.body] }
      machine.sleep(3)
      client.get("/")
      assert_equal [200, "close"], client.answer.then { |answer| [answer.status, answer["connection"]] }
      assert_equal 0, stops.await
    end
  end

  # --- the end of a connection ---

  # It is not closed under what the client still sends, for that would cost it the answer.
  def test_a_client_that_is_refused_and_goes_on
    serving(HELLO) do |connect, server|
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000\r\n\r\n")
      assert_equal 200, client.answer.status
      assert client.ended?
      4.times { client.send("x" * 1000) }
      assert_equal 1, server.connections
      assert_includes(2..3, seconds { machine.sleep(0.5) until server.connections.zero? })
    end
  end
end
