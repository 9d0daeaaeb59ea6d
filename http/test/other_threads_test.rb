# frozen_string_literal: true

require "http_helper"

# What a request gives to its program, used by another thread of the program, and when its request has ended.
class HTTPOtherThreadsTest < Minitest::Test
  include OnServer

  WrongThread = Ringspun::WrongThreadError
  TEXT = { "content-type" => "text/plain" }.freeze
  GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"
  # More than goes with the head of a request.
  LONG = "x" * 100_000
  POST = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: #{LONG.size}\r\n\r\n#{LONG}".freeze

  # @return [Object] of the block, in another thread; or the error that it has raised
  def elsewhere(&call) = Thread.new { attempt(&call) }.value

  # @return [Hash{Symbol => Object}] of each call, in another thread
  def each_elsewhere(object, **calls)
    calls.to_h { |name, arguments| [name, elsewhere { object.public_send(name, *arguments) }] }
  end

  OF_OUTPUT = { write: ["x"], :<< => ["x"], flush: [], read: [1], readpartial: [1], close: [], close_read: [], close_write: [],
                wait_gone: [], until_gone: [] }.freeze

  # --- the stream of an answer ---

  # An answer that another thread was to write would end as if it were whole.
  def test_a_stream_in_another_thread
    OF_OUTPUT.each do |name, arguments|
      raised = nil
      body = lambda do |output|
        output.write("begun")
        raised = elsewhere { output.public_send(name, *arguments) }
        refute_predicate output, :closed?
        output.write(" and all")
      end
      serving(->(_env) { [200, TEXT.dup, body] }, lint: false) do |connect|
        client = connect.call
        client.get("/")
        assert_raises(Ringspun::EndOfStreamError) { client.answer }
      end
      assert_instance_of WrongThread, raised, name
      assert_match(/Thread::Queue.*WrongThreadError.*other_threads_test.rb:\d+/m, @errors.string)
    end
  end

  def test_one_in_which_nothing_has_been_written
    raised = []
    bodies = [->(output) { raised << elsewhere { output.write("x" * 2_000_000) } },
              ->(output) { Thread.new { silently { output.write("x") } }.join }]
    bodies.each { |body| assert_cut(->(_env) { [200, TEXT.dup, body] }) }
    assert_equal [WrongThread], raised.map(&:class)
  end

  def silently
    Thread.current.report_on_exception = false
    yield
  end

  # A 500, or the head alone: whether that has left, the scheduler of threads decides.
  def assert_cut(app)
    serving(app, lint: false) do |connect|
      client = connect.call
      client.get("/")
      assert_match(/\AHTTP\/1.1 (500|200 OK\r\n([^\r]+\r\n)*\r\n\z)/, client.rest) # without an end of its chunks
    end
    assert_match(/WrongThreadError/, @errors.string)
  end

  def test_what_merely_looks_may_be_anywhere
    body = ->(output) { output.write(each_elsewhere(output, closed?: [], stopping?: []).inspect) }
    assert_equal({ closed?: false, stopping?: false }.inspect,
                 answer_to(->(_env) { [200, TEXT.dup, body] }, GET, lint: false).body)
  end

  # --- one that ends when the program closes it ---

  def hijacked(&block) = ->(_env) { [200, TEXT.merge("rack.hijack" => block), []] }

  # The strand of the server waits for its end.
  def test_a_partial_hijack_in_another_thread
    OF_OUTPUT.each do |name, arguments|
      gate = Thread::Queue.new
      thread = nil
      app = hijacked do |output|
        thread = Thread.new { gate.pop && attempt { output.public_send(name, *arguments) } }
      end
      serving(app, lint: false) do |connect|
        client = connect.call
        client.get("/")
        assert_equal "HTTP/1.1 200 OK\r\n", client.read(17)
        gate << true
        assert_match(/\r\n\r\n\z/, client.rest, name) # without an end of its chunks
      end
      assert_instance_of WrongThread, thread.value, name
      assert_match(/WrongThreadError/, @errors.string)
    end
  end

  def test_one_that_is_used_before_it_is_waited_for
    raised = nil
    app = hijacked do |output|
      raised = elsewhere { output.close }
    end
    assert_cut(app)
    assert_instance_of WrongThread, raised
  end

  # The way that the guide shows.
  def test_what_another_thread_makes_goes_through_a_queue
    app = hijacked do |output|
      pieces = Thread::Queue.new
      Thread.new { 3.times { |number| pieces << number.to_s } && pieces.close }
      while (piece = pieces.pop)
        output.write(piece)
      end
      output.close
    end
    assert_equal "012", answer_to(app, GET, lint: false).body
    assert_equal "", @errors.string
  end

  # --- events ---

  def test_events_in_another_thread
    raised = nil
    app = lambda do |env|
      HTTP::SSE.answer(env) do |events|
        events << "first"
        raised = each_elsewhere(events, write: ["x"], :<< => ["x"], comment: ["x"])
        assert_equal [0, false], [events.instance_variable_get(:@writing), events.instance_variable_get(:@quiet)]
      end
    end
    serving(app, lint: false) do |connect|
      client = connect.call
      client.get("/")
      assert_raises(Ringspun::EndOfStreamError) { client.answer }
    end
    assert_equal [WrongThread] * 3, raised.values.map(&:class)
    assert_match(/WrongThreadError/, @errors.string)
  end

  # As ActionController::Live has it, whose stream is for its own thread.
  def test_events_by_a_stream_of_another_thread
    text = +""
    stream = Object.new
    stream.define_singleton_method(:write) { |string| text << string }
    Thread.new { HTTP::SSE.open(stream) { |events| elsewhere { events << "x" } } }.join
    assert_equal "data: x\n\n", text
  end

  # --- the body of a request ---

  # No byte is lost.
  def test_a_body_in_another_thread
    raised = nil
    app = lambda do |env|
      input = env["rack.input"]
      line = [input.read(1), input.readpartial(1)]
      raised = each_elsewhere(input, read: [1], gets: [], readpartial: [1], close: [])
      raised[:each] = elsewhere { input.each { flunk } }
      [200, TEXT.dup, [(line.join + input.read).size.to_s]]
    end
    chunked = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n186a0\r\n#{LONG}\r\n0\r\n\r\n"
    { "its length" => POST, "chunks" => chunked }.each do |name, request|
      assert_equal LONG.size.to_s, answer_to(app, request, lint: false).body, name
      assert_equal [WrongThread], raised.values.map(&:class).uniq, "#{name}: #{raised}"
      assert_equal "", @errors.string
    end
  end

  # --- the connection ---

  # The program goes on, and answers.
  def test_a_hijack_and_an_early_hint_in_another_thread
    raised = []
    app = lambda do |env|
      raised << elsewhere { env["rack.hijack"].call } << elsewhere { env["rack.early_hints"].call({ "link" => "x" }) }
      [200, TEXT.dup, ["all"]]
    end
    assert_equal "all", answer_to(app, GET, lint: false, early_hints: true).body
    assert_equal [WrongThread] * 2, raised.map(&:class)
  end

  # What it has got is an IO as any other.
  def test_a_hijacked_connection_in_another_thread
    app = lambda do |env|
      io = env["rack.hijack"].call
      Thread.new { io.write("hello") && io.close }
      [-1, {}, []]
    end
    serving(app, lint: false) do |connect|
      client = connect.call
      client.get("/")
      assert_equal "hello", client.rest
    end
  end

  def test_the_client_in_another_thread
    raised = nil
    app = lambda do |env|
      peer = env["ringspun.peer"]
      raised = each_elsewhere(peer, wait_gone: [], until_gone: [])
      raised[:drain] = elsewhere { peer.until_gone(drain: true) { flunk } }
      [200, TEXT.dup, [elsewhere { peer.stopping? }.to_s]]
    end
    assert_equal "false", answer_to(app, GET).body
    assert_equal [WrongThread] * 3, raised.values.map(&:class)
  end

  def test_the_scope_in_another_thread
    raised = nil
    app = lambda do |env|
      scope = env["ringspun.scope"]
      raised = [elsewhere { scope.cancel }, elsewhere { scope.spin { flunk } }]
      [200, TEXT.dup, ["all"]]
    end
    assert_equal "all", answer_to(app, GET, request_timeout: 60).body
    assert_equal [WrongThread] * 2, raised.map(&:class)
  end

  # --- when the request has ended ---

  # Nothing of what the next request gets is touched.
  def test_what_is_kept_behind_its_request
    kept = {}
    raised = nil
    app = lambda do |env|
      next [200, TEXT.dup, keep(kept, env)] if kept.empty?

      body = Enumerator.new do
        raised = calls_of_kept(kept).map { |call| attempt(&call) }
        raise "no" # a 500, if no head has left
      end
      [200, TEXT.dup, body]
    end
    serving(app, lint: false, request_timeout: 60) do |connect|
      client = connect.call
      client.send(POST)
      assert_equal "kept", client.answer.body
      client.send(POST)
      assert_equal 500, client.answer.status
    end
    assert_equal [IOError] * 7 + [Ringspun::ClosedError], raised.map(&:class), raised
  end

  def keep(kept, env)
    kept[:input] = env["rack.input"].tap { |input| input.read(LONG.size) }
    kept[:scope] = env["ringspun.scope"]
    lambda do |output|
      kept[:output] = output
      output.write("kept")
    end
  end

  def calls_of_kept(kept)
    input, scope, output = kept.values_at(:input, :scope, :output)
    [-> { output.write("x") }, -> { output << "x" }, -> { output.flush }, -> { output.readpartial(1) }, -> { input.read },
     -> { input.gets }, -> { input.readpartial(1) }, -> { scope.spin { nil } }]
  end

  def attempt
    yield
  rescue StandardError => error
    error
  end
end
