# frozen_string_literal: true

require "http_helper"

# rubies: all

# What a program that rests on Active Support, Active Record or I18n has around it. Rails applications: test/rails.
class HTTPSharedThreadTest < Minitest::Test
  include AnyBackend
  include OnServer

  GEMS = { "RUBYOPT" => "-rbundler/setup" }.freeze
  SERVED = <<~'RUBY'
    $VERBOSE = nil
    require "ringspun/http"
    serve = lambda do
      Ringspun.run { Ringspun::HTTP.listen(->(_env) { [200, {}, []] }, "127.0.0.1", 0, errors: $stdout).stop }
      puts "served"
    rescue Ringspun::UsageError => error
      puts error.message
    end
  RUBY

  def said(code)
    answer = ruby_child(SERVED + code, env: GEMS)
    assert_predicate answer.status, :success?, answer.err
    answer.out.lines(chomp: true)
  end

  def test_the_state_of_active_support_alone_is_set_to_be_that_of_a_fiber
    assert_equal %w[served fiber], said(<<~'RUBY')
      require "active_support"
      serve.call
      puts ActiveSupport::IsolatedExecutionState.isolation_level
    RUBY
  end

  def test_active_record_by_thread_is_refused
    first, second = said(<<~'RUBY')
      require "active_record"
      serve.call
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      serve.call
    RUBY
    assert_match(/or without Rails ActiveSupport::IsolatedExecutionState\.isolation_level = :fiber before Active Record/, first)
    assert_equal "served", second
  end

  def test_one_locale_for_all_is_told
    assert_equal ["served"], said("require 'i18n'; serve.call")
    assert_match(/keeps the locale by thread, .* update the gem i18n to 1\.15/, said(<<~'RUBY').first)
      module I18n
        def self.config = Thread.current.thread_variable_get(:i18n) || Object.new.tap { |one| self.config = one }
        def self.config=(one)
          Thread.current.thread_variable_set(:i18n, one)
        end
      end
      serve.call
    RUBY
  end

  # As many run as there are connections; an error gives its turn to the next.
  def test_turns
    inside = most = 0
    app = lambda do |env|
      most = [most, inside += 1].max
      Ringspun::Machine.current.yield
      inside -= 1
      env.odd? ? raise("no") : env
    end
    turns = HTTPSharedThreadTest.part(:Turns).new(app, 3)
    Ringspun.run do |machine|
      strands = Array.new(20) { |number| machine.spin { attempt(turns, number) } }
      assert_equal Array.new(20) { |number| number.odd? ? :failed : number }, strands.map(&:await)
    end
    assert_equal [3, 0], [most, inside]
  end

  # A turn is for a request whose body is there.
  def test_a_body_that_comes_slowly_has_no_turn
    settings = Struct.new(:ringspun_http).new(Struct.new(:requests).new(1))
    HTTP.const_set(:Railtie, Struct.new(:config).new(settings))
    serving(->(env) { [200, { "content-type" => "text/plain" }, [env["rack.input"]&.read.to_s]] }) do |connect|
      slow, other = connect.call, connect.call
      slow.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n", "18000\r\n#{"x" * 0x18000}\r\n")
      2.times { |number| assert_equal 200, other.get("/#{number}") && other.answer.status }
      slow.send("0\r\n\r\n")
      assert_equal 0x18000, slow.answer.body.bytesize
    end
  ensure
    HTTP.__send__(:remove_const, :Railtie)
  end

  def attempt(turns, number)
    turns.call(number)
  rescue RuntimeError
    :failed
  end

  # As much of a Rails application as decides about its code.
  Reloader = Struct.new(:check, :prepare, :reloads) do
    def to_prepare(&block) = self.prepare = block
    def reloaded! = self.reloads += 1
  end
  Settings = Struct.new(:reload_classes_only_on_change)
  Rails = Struct.new(:reloader, :config)

  # A request after a change waits until those before have left, and loads; the others go on as soon as that is done.
  def test_a_change_waits_for_those_inside
    changed = false
    reloader = Reloader.new(-> { changed }, nil, 0)
    seen = []
    app = lambda do |name|
      seen << "#{name} in"
      load_it(reloader) { changed = false } if changed
      Ringspun::Machine.current.yield
      seen << "#{name} out"
    end
    gate = HTTPSharedThreadTest.part(:Reloading).new(app, Rails.new(reloader, Settings.new(true)))
    Ringspun.run do |machine|
      first = machine.spin { gate.call("a") }
      machine.yield
      changed = true
      [first, machine.spin { gate.call("b") }, machine.spin { gate.call("c") }].each(&:join)
    end
    assert_equal ["a in", "a out", "b in", "c in", "b out", "c out"], seen
    assert_equal 1, reloader.reloads
  end

  def load_it(reloader)
    yield
    reloader.prepare.call
  end

  def self.part(name) = Ringspun::HTTP.const_get(:Frameworks).const_get(name)
end
