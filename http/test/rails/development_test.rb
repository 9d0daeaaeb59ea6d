# frozen_string_literal: true

require "http_helper"
require "net/http"
require "support/crowd"
require "support/rails_site"

RailsSite.folder

# What a developer has of it: changed code, the page of an error, restarts and the end.
class RailsDevelopmentTest < Minitest::Test
  include AnyBackend

  def setup
    super
    @crowd = Crowd.new("#{RailsSite.data}/crowd")
    @folder = Dir.mktmpdir("copy-", File.dirname(RailsSite.folder)).tap { |path| FileUtils.cp_r("#{RailsSite.folder}/.", path) }
    Dir["#{@folder}/{app,config}/**/*"].each { |path| File.utime(Time.now - 60, Time.now - 60, path) }
  end

  def teardown
    @server&.close
    @crowd.close
    FileUtils.rm_rf(@folder)
    super
  end

  def get(port, path, host: "127.0.0.1") = Net::HTTP.get_response(URI("http://#{host}:#{port}#{path}"))

  # Of an error what it says, and not its whole page.
  def text(...)
    answer = get(...)
    answer.code == "200" ? answer.body : answer.body[%r{<header.*?</h2>}m] || answer.body
  end

  def test_a_day_of_a_developer
    options = { folder: @folder, env: { "RAILS_ENV" => nil } }
    @server, port = RailsSite.server("-e", "development", "-P", "#{@folder}/tmp/pids/one.pid", **options)
    assert_equal @server.pid, Integer(File.read("#{@folder}/tmp/pids/one.pid"))
    assert_equal %w[one], texts(port, 20).uniq
    assert_equal "200", get(port, "/up", host: "localhost").code
    changed_code_waits_for_those_that_run(port)
    the_page_of_an_error(port)
    File.write("#{@folder}/config/ringspun_http.rb", "access_log :common, to: 'log/access.log'\nmax_connections 1000")
    port = starts_anew
    assert_equal %w[two], texts(port, 20).uniq
    Thread.pass until File.read("#{@folder}/log/access.log").match?(%r{"GET /greeting HTTP/1\.1" 200 }) # behind the answers
    ends_when_the_last_request_has_ended(port)
  end

  # At once. On a new server none of the code is loaded.
  def texts(port, count)
    Ringspun.run { |machine| Array.new(count) { machine.spin { text(port, "/greeting") } }.map(&:await) }
  end

  def changed_code_waits_for_those_that_run(port)
    Ringspun.run do |machine|
      slow = machine.spin { text(port, "/slow") }
      @crowd.gather(1)
      File.write("#{@folder}/app/models/greeting.rb", "class Greeting\n  def self.text = \"two\"\nend\n")
      late = Array.new(3) { machine.spin { text(port, "/greeting") } }
      machine.yield until @crowd.ask == "3"
      @crowd.go
      assert_equal ["true one", %w[two two two]], [slow.await, late.map(&:await)]
    end
  end

  def the_page_of_an_error(port)
    page = get(port, "/boom")
    assert_equal "500", page.code
    assert_match(/as told.*greetings_controller\.rb/m, page.body)
  end

  # As `bin/rails restart` does.
  def starts_anew
    FileUtils.touch("#{@folder}/tmp/restart.txt")
    Integer(@server.await(RailsSite::LISTENS)[1])
  end

  def ends_when_the_last_request_has_ended(port)
    Ringspun.run do |machine|
      slow = machine.spin { text(port, "/slow") }
      @crowd.gather(1)
      @server.signal(:INT)
      refuse = machine.spin { machine.yield until refused?(port) }
      refuse.await
      @crowd.go
      assert_equal "true two", slow.await
    end
    assert_equal 0, @server.wait.exitstatus
    assert_includes @server.lines.last(3).join, "Exiting"
    refute_path_exists "#{@folder}/tmp/pids/one.pid"
  end

  def refused?(port)
    TCPSocket.new("127.0.0.1", port).close
    false
  rescue Errno::ECONNRESET # it came just before
    false
  rescue Errno::ECONNREFUSED
    true
  end
end
