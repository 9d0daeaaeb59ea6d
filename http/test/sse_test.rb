# frozen_string_literal: true

require "http_helper"
require "rack/deflater"
require "support/on_simulation"

# rubies: all

# Server-Sent Events, and clients that go away.
class HTTPSSETest < Minitest::Test
  include OnServer
  include OnSimulation

  SSE = Ringspun::HTTP::SSE

  def faults = false
  def machine = Ringspun::Machine.current

  # What a stream of events makes of these calls.
  def written(**)
    text = +""
    SSE.open(Writer.new(text), **) { |events| yield events }
    text
  end

  Writer = Struct.new(:text) do
    def write(string) = text << string
  end

  # As https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation has it.
  #
  # @return [Array<Array(String, String, String)>] type, data and last id of each
  def understood(text)
    id = ""
    text.split(/(?:\r\n|\r|\n){2}/).filter_map do |block|
      fields = block.split(/\r\n|\r|\n/).reject { |line| line.start_with?(":") }
                    .map { |line| line.split(":", 2).then { |name, value| [name, value.to_s.delete_prefix(" ")] } }
      id = fields.assoc("id").last if fields.assoc("id")
      data = fields.filter_map { |name, value| value if name == "data" }
      [fields.assoc("event")&.last || "message", data.join("\n"), id] if data.any?
    end
  end

  def test_the_text_of_an_event
    assert_equal "event: e\nid: 1\ndata: a\ndata: b\n\n", written { |events| events.write("a\nb", event: :e, id: 1) }
    assert_equal "data: a\n\ndata: \n\n", written { |events| events << "a" << "" }
    assert_equal "retry: 2500\n\n: still\n: there\n\n", written(reconnect: 2.5) { |events| events.comment("still\nthere") }
  end

  def test_a_client_gets_what_was_given
    { "a" => "a", "" => "", "a\n" => "a\n", "\na" => "\na", " a" => " a", "a\rb" => "a\nb", "a\r\nb\r\r\n" => "a\nb\n\n",
      "data: x\n\ndata: y" => "data: x\n\ndata: y", ":x" => ":x", "ä\u2028" => "ä\u2028", "a\r\n\r\nid: 7" => "a\n\nid: 7" }
      .each do |given, got|
        assert_equal [["message", got, ""], ["x", "next", "é"]],
                     understood(written { |events| events.write(given).write("next", event: "x", id: "é") }), given.inspect
      end
  end

  def test_what_is_no_event_is_refused_and_not_sent
    [-> { _1.write("a", event: "b\nc") }, -> { _1.write("a", event: "b\rc") }, -> { _1.write("a", id: "1\n") },
     -> { _1.write("a", id: "1\0") }, -> { _1.write("\xff") }, -> { _1.write({}) }, -> { _1.write(nil) },
     -> { _1.comment("\xff".b) }, -> { _1.write("a".encode("UTF-16LE") + "\xd8".dup.force_encoding("UTF-16LE")) }].each do |call|
      assert_equal "", (written { |events| assert_raises(Ringspun::UsageError) { call.call(events) } })
    end
    [{ heartbeat: 0 }, { reconnect: -1 }, { reconnect: "1" }, { reconnect: 1i }].each do |options|
      assert_raises(Ringspun::UsageError) { written(**options) { flunk } }
    end
    assert_raises(Ringspun::UsageError) { SSE.answer({}) }
    assert_raises(Ringspun::UsageError) { SSE.body({}) }
  end

  def test_an_answer
    app = lambda do |env|
      SSE.answer(env, headers: { "x-a" => "b" }) { |events| events.write("since #{events.last_id}", id: "é2") }
    end
    serving(app) do |connect|
      client = connect.call
      client.get("/", "last-event-id: \xc3\xa91", "connection: close")
      answer = client.answer
      assert_equal ["text/event-stream", "no-cache, no-transform", "no", "b", "chunked"],
                   answer.headers.values_at("content-type", "cache-control", "x-accel-buffering", "x-a", "transfer-encoding")
      assert_equal [["message", "since é1", "é2"]], understood(answer.body.force_encoding("UTF-8"))
    end
  end

  # It would wrap the body in one that cannot be streamed, and keep events in its buffer.
  def test_a_deflater_leaves_events_alone
    app = Rack::Deflater.new(->(env) { SSE.answer(env) { |events| events << "a" } })
    serving(app, lint: false) do |connect|
      client = connect.call
      client.get("/", "accept-encoding: gzip")
      answer = client.answer
      assert_equal ["data: a\n\n", nil], [answer.body, answer["content-encoding"]]
    end
    assert_equal "", @errors.string
  end

  # --- heartbeats ---

  def test_a_comment_comes_when_nothing_else_does
    times = []
    app = lambda do |env|
      SSE.answer(env, heartbeat: 10) do |events|
        3.times { events.write("x") && machine.sleep(4) }
        machine.sleep(30)
      end
    end
    serving(app) do |connect|
      client = connect.call
      client.get("/")
      began = machine.now
      3.times { assert_equal "data: x\n\n", client.chunk }
      while (chunk = client.chunk)
        assert_equal ":\n\n", chunk
        times << (machine.now - began).round
      end
      gaps = [8, *times, 42].each_cons(2).map { |from, to| to - from }
      assert_operator gaps.max, :<=, 10
      assert_operator gaps[0..-2].min, :>=, 5
    end
  end

  def test_no_comment_without_a_heartbeat
    app = ->(env) { SSE.answer(env, heartbeat: nil) { machine.sleep(100) } }
    serving(app) do |connect|
      client = connect.call
      client.get("/")
      assert_equal "", client.answer.body
    end
  end

  # --- clients that go away ---

  def test_a_client_that_goes_away_ends_a_strand_that_waits
    ended = []
    app = lambda do |env|
      SSE.answer(env, heartbeat: nil) do |events|
        events << "first"
        machine.sleep
      ensure
        ended << :block
      end
    end
    finished = finishing(app, ended)
    serving(finished) do |connect, server|
      client = connect.call
      client.get("/")
      assert_equal "data: first\n\n", client.chunk
      client.close
      machine.sleep(1) until server.connections.zero?
      assert_equal [:block, Ringspun::HTTP::GoneError], ended
      assert_equal "", @errors.string
    end
  end

  def finishing(app, ended)
    lambda do |env|
      env["rack.response_finished"] << ->(*, error) { ended << error.class }
      app.call(env)
    end
  end

  def test_a_client_that_goes_away_ends_a_program_that_has_not_answered
    ended = []
    app = lambda do |env|
      env["ringspun.peer"].until_gone { machine.sleep }
    ensure
      ended << :program
    end
    serving(finishing(app, ended)) do |connect, server|
      client = connect.call
      client.get("/")
      machine.sleep(1)
      client.close
      machine.sleep(1) until server.connections.zero?
      assert_equal [:program, Ringspun::HTTP::GoneError], ended
    end
  end

  def test_what_does_not_wait_for_long_is_not_touched
    app = ->(env) { [200, {}, [env["ringspun.peer"].until_gone { machine.sleep(1) && "value" }]] }
    serving(app) do |connect|
      client = connect.call
      2.times do
        client.get("/")
        assert_equal "value", client.answer.body
      end
    end
  end

  def test_a_wait_with_a_timeout
    app = lambda do |env|
      env["ringspun.peer"].wait_gone(timeout: 5)
    rescue Ringspun::TimeoutError
      [200, {}, ["there"]]
    end
    serving(app) do |connect|
      client = connect.call
      client.get("/")
      assert_equal "there", client.answer.body
    end
  end

  # What a client sends before its time is no sign that it goes.
  def test_a_client_that_sends_the_next_request_already
    app = ->(env) { [200, {}, [env["ringspun.peer"].until_gone { machine.sleep(5) && env["PATH_INFO"] }]] }
    serving(app) do |connect|
      client = connect.call
      client.get("/1")
      client.get("/2")
      assert_equal %w[/1 /2], [client.answer.body, client.answer.body]
    end
  end

  def test_an_error_of_the_block_is_raised
    app = ->(env) { env["ringspun.peer"].until_gone { raise "mine" } }
    serving(app) do |connect|
      client = connect.call
      client.get("/")
      assert_equal 500, client.answer.status
      assert_match(/mine \(RuntimeError\)/, @errors.string)
    end
  end

  # --- slow clients, and the end ---

  def test_a_client_that_does_not_read_holds_the_program
    sent = 0
    app = lambda do |env|
      SSE.answer(env) do |events|
        loop { events.write("x" * 10_000) && sent += 10_000 }
      end
    end
    serving(app) do |connect, server|
      client = connect.call
      client.get("/")
      machine.sleep(50)
      assert_operator sent, :<, 3_000_000
      before = sent
      assert_includes client.chunk, "data: xxx"
      100.times { client.chunk }
      machine.sleep(1)
      assert_operator sent, :>, before
      client.close
      machine.sleep(1) until server.connections.zero?
    end
  end

  def test_it_ends_when_the_server_stops
    ended = false
    app = lambda do |env|
      SSE.answer(env) do |events|
        events << "first"
        machine.sleep
      ensure
        ended = true
      end
    end
    serving(app) do |connect, server|
      client = connect.call
      client.get("/")
      assert_equal "data: first\n\n", client.chunk
      stops = Ringspun.spin { server.stop(within: 30) }
      assert_nil client.chunk
      assert ended
      client.close
      assert_equal 0, stops.await
    end
  end

  def test_other_answers_go_on_until_the_limit_of_a_stop
    body = lambda do |output|
      output.write("first")
      machine.sleep
    end
    serving(->(_env) { [200, {}, body] }) do |connect, server|
      client = connect.call
      client.get("/")
      assert_equal "first", client.chunk
      assert_equal 1, server.stop(within: 30)
      assert_raises(Ringspun::EndOfStreamError) { client.chunk }
    end
  end
end
