# frozen_string_literal: true

require "http_helper"

# Programs that fail in ways that are no StandardError, or when others have their connection.
class HTTPFailingProgramsTest < Minitest::Test
  include OnServer

  TEXT = { "content-type" => "text/plain" }.freeze
  GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"

  # --- what a program raises ---

  # Others are served in the same process.
  def test_a_program_that_ends_the_process
    { exit: -> { exit 3 }, abort: -> { abort "no" }, "an Exception": -> { raise Exception, "no" } }.each do |name, action| # rubocop:disable Lint/RaiseException
      ended = nil
      app = lambda do |env|
        env["rack.response_finished"] << ->(_env, _status, _headers, error) { ended = error }
        capture_io { action.call }
      end
      assert_equal 500, answer_to(app, GET).status, name
      assert_kind_of Exception, ended
      assert_match(/ringspun-http: .*(SystemExit|Exception)/, @errors.string)
    end
  end

  def test_a_body_that_ends_the_process
    body = Enumerator.new do |parts|
      parts << "begun"
      exit
    end
    serving(->(_env) { [200, TEXT.dup, body] }, lint: false) do |connect|
      client = connect.call
      client.get("/")
      assert_raises(Ringspun::EndOfStreamError) { client.answer }
    end
  end

  def test_what_is_called_behind_an_answer_and_ends_the_process
    app = lambda do |env|
      env["rack.response_finished"] << ->(*) { exit }
      [200, TEXT.dup, ["hello"]]
    end
    serving(app) do |connect|
      client = connect.call
      2.times do
        client.get("/")
        assert_equal 200, client.answer.status
      end
    end
    assert_match(/in rack.response_finished: .*SystemExit/, @errors.string)
  end

  def test_a_limit_of_time_does_not_change_that
    assert_equal 500, answer_to(->(_env) { exit }, GET, request_timeout: 60).status
  end

  # A signal is for the process. One that has no handler comes as such an error, wherever the thread is.
  def test_a_signal_ends_the_run
    assert_raises(Interrupt) { answer_to(->(_env) { raise Interrupt }, GET) }
  end

  # --- what ends the strand of a request ---

  # None of them is seen by a rescue of the program's errors; the first is no error at all.
  ENDS = {
    killed: -> { Fiber.current.kill },
    cancelled: -> { raise Ringspun::Cancelled, "by hand" },
    terminated: -> { Ringspun::Machine.current.then { |machine| machine.terminate(machine.running) && machine.sleep } },
    "terminated by another": lambda do
      machine = Ringspun::Machine.current
      mine = machine.running
      machine.spin { machine.terminate(mine) }
      machine.sleep
    end
  }.freeze
  # Each makes another path of what is called around the program.
  OPTIONS = [{}, { request_timeout: 60 }, { max_requests: 5 }].freeze

  def each_end(&) = ENDS.each { |name, ending| OPTIONS.each { |options| yield "#{name} #{options}", ending, options } }

  # @return [Object] of the block, which gets a client that has sent a request; another one is served behind it
  def ended(program, options, request: GET)
    finished = []
    app = lambda do |env|
      next [200, TEXT.dup, ["alive"]] if env["PATH_INFO"] == "/alive"

      env["rack.response_finished"] << ->(_env, status, _headers, error) { finished << [status, error.class] }
      program.call(env)
    end
    value = serving(app, lint: false, **options) do |connect|
      client = connect.call
      client.send(request)
      yield(client).tap { assert_equal "alive", connect.call.tap { |other| other.get("/alive") }.answer.body }
    end
    [value, finished.map(&:last)]
  end

  ENDED = %r{\Aringspun-http: GET / has no whole answer: its strand has ended, .*(Cancelled|TerminatedError)\)\n\z}
  ERRORS = [Ringspun::Cancelled, Ringspun::TerminatedError].freeze

  def test_a_strand_that_ends_before_its_answer
    each_end do |name, ending, options|
      answer, finished = ended(->(_env) { ending.call }, options, &:answer)
      assert_equal [500, "close"], [answer&.status, answer && answer["connection"]], name
      assert_match(ENDED, @errors.string, name)
      assert_equal [1, 1], [finished.size, (finished & ERRORS).size], name
    end
  end

  def test_one_that_ends_behind_its_head
    bodies = { each: ->(ending) { Enumerator.new { |parts| (parts << "begun") && ending.call } },
               call: ->(ending) { ->(output) { output.write("begun") && output.flush && ending.call } } }
    bodies.to_a.product(ENDS.to_a, OPTIONS).each do |(kind, body), (name, ending), options|
      program = ->(_env) { [200, TEXT.dup, body.call(ending)] }
      said = "#{kind} #{name} #{options}"
      (_, got), finished = ended(program, options) { |client| [assert_raises(Ringspun::EndOfStreamError) { client.answer }, true] }
      assert got
      assert_match(ENDED, @errors.string, said)
      assert_equal 1, (finished & ERRORS).size, said
    end
  end

  # Without a length, the end of the connection would be taken for the end of the answer.
  def test_one_that_ends_behind_the_head_for_a_client_of_http_1_0
    program = ->(_env) { [200, TEXT.dup, ->(output) { output.write("begun") && output.flush && Fiber.current.kill }] }
    ended(program, {}, request: "GET / HTTP/1.0\r\n\r\n") { |client| assert_raises(Errno::ECONNRESET) { client.rest } }
  end

  def test_one_that_ends_with_the_connection_taken
    ENDS.each do |name, ending|
      kept = nil
      program = lambda do |env|
        kept = env["rack.hijack"].call
        ending.call
      end
      got, = ended(program, {}, &:rest)
      assert_equal ["", true], [got, kept.closed?], name
      assert_match(/Cancelled|TerminatedError/, @errors.string, name)
    end
  end

  # What ends all of them is the server's own; a proxy may send to another one what has no answer.
  def test_a_stop_that_cuts_answers
    inside = Ringspun::Queue.new
    serving(->(_env) { inside.push(true) && Ringspun::Machine.current.sleep }, lint: false) do |connect, server|
      client = connect.call
      client.get("/slow")
      inside.pop
      assert_equal 1, server.stop(within: 0)
      assert_equal "", client.rest
    end
    assert_equal "ringspun-http: GET /slow has no whole answer: the server has stopped\n", @errors.string
  end

  def test_an_env_that_is_frozen
    assert_equal 500, answer_to(->(env) { env.freeze && raise("no") }, GET, lint: false).status
    assert_match(/no \(RuntimeError\)/, @errors.string)
  end

  def test_an_error_without_a_message
    error = Class.new(StandardError) { def message = raise("this one as well") }
    assert_equal 500, answer_to(->(_env) { raise error }, GET).status
    assert_match(/failing_programs_test.rb:\d+.*whose message raises RuntimeError/, @errors.string)
  end

  # As where the standard error was a pipe to a program that has ended.
  def test_errors_that_nobody_reads
    reader, writer = IO.pipe
    reader.close
    app = lambda do |env|
      env["rack.response_finished"] << ->(*) { raise "no" }
      raise "no"
    end
    _, warned = capture_io do
      serving(app, errors: writer) do |connect|
        2.times { assert_equal 500, connect.call.tap { |client| client.get("/") }.answer.status }
      end
    end
    assert_equal 1, warned.scan("errors: takes nothing (Broken pipe)").size
  ensure
    writer.close
  end

  # The reason is in UTF-8, and the line in what a client has sent.
  def test_errors_that_go_into_no_text_with_the_reason
    takes_none = Object.new
    def takes_none.puts(_line) = raise("l\u00e4uft nicht")
    telling = Ringspun::HTTP.const_get(:Telling)
    _, warned = capture_io { assert_nil telling.new(takes_none).puts("\xff".b) }
    assert_match(/\Aringspun-http: errors: takes nothing \(l..uft nicht\), which is told once; it was to take: \xff\Z/n, warned.b)
    _, warned = capture_io { assert_nil telling.new(takes_none).puts(Object.new.tap { |it| def it.to_s = raise("no") }) }
    assert_match(/takes nothing \(RuntimeError\); what it was to take is no text/, warned)
  end

  # The answer is its parent's.
  def test_a_child_that_exits
    app = lambda do |_env|
      exit 3 unless (child = fork)
      [200, TEXT.dup, [Process.wait2(child).last.exitstatus.to_s]]
    end
    serving(app) do |connect|
      client = connect.call
      client.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
      assert_match(/\AHTTP.*\r\n\r\n3\z/m, client.rest)
    end
    assert_equal "", @errors.string
  end

  # The client has the whole answer.
  def test_a_body_that_fails_when_it_is_closed
    body = %w[a b].each
    body.define_singleton_method(:close) { raise "no" }
    serving(->(_env) { [200, TEXT.dup, body] }, lint: false) do |connect|
      client = connect.call
      client.get("/")
      client.get("/")
      assert_equal [[200, "ab", nil], [200, "ab", "close"]],
                   Array.new(2) { client.answer.then { |answer| [answer.status, answer.body, answer["connection"]] } }
    end
    assert_match(/no \(RuntimeError\)/, @errors.string)
  end

  # --- connections that it takes ---

  # Libraries of WebSockets look for it there.
  def test_the_connection_that_was_taken_is_in_the_env
    app = lambda do |env|
      taken = env["rack.hijack"].call
      taken.write(env["rack.hijack_io"].equal?(taken) ? "the same" : "another")
      taken.close
      [-1, {}, []]
    end
    serving(app, lint: false) do |connect|
      client = connect.call
      client.get("/")
      assert_equal "the same", client.rest
    end
  end

  # Its client would wait until the garbage is collected, and so would the end of the server.
  def test_a_program_that_takes_the_connection_and_fails
    kept = nil
    app = lambda do |env|
      kept = env["rack.hijack"].call
      raise "no"
    end
    serving(app, lint: false) do |connect|
      client = connect.call
      client.get("/")
      assert_equal "", client.rest
    end
    assert_predicate kept, :closed?
    assert_match(/no \(RuntimeError\)/, @errors.string)
  end

  # The server would read what the client still sends, and another strand waits for that.
  def test_a_strand_that_goes_on_reading_the_body_behind_the_answer
    fates = Thread::Queue.new
    app = lambda do |env|
      Ringspun::Machine.current.__send__(:spin_beside) do # as of a library that serves several requests
        fates << env["rack.input"].read(40_000)
      rescue StandardError => error
        fates << error.class
      end
      Ringspun::Machine.current.yield
      [200, { "content-type" => "text/plain" }, ["answer"]]
    end
    serving(app, lint: false) do |connect|
      client = connect.call
      client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 200000\r\n\r\n#{"x" * 10}")
      assert_equal [200, "answer"], client.answer.then { |answer| [answer.status, answer.body] }
      client.close
      refute_nil fates.pop
    end
    assert_empty @errors.string
  end
end
