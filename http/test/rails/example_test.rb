# frozen_string_literal: true

require "http_helper"
require "json"
require "net/http"
require "support/rails_site"

RailsSite.folder

# examples/rails_app, with the gems of the generated application.
class RailsExampleTest < Minitest::Test
  include AnyBackend

  FOLDER = File.join(RailsApp::ROOT, "examples/rails_app")
  RACKUP = ["-rbundler/setup", "-e", 'load Gem.bin_path("rackup", "rackup")', "--"].freeze

  def setup
    super
    options = { chdir: FOLDER, seconds: RailsApp::START_SECONDS, env: RailsSite.env }
    @server = HeardProcess.new(*RACKUP, "-s", "ringspun", "-o", "127.0.0.1", "-p", "0", "-E", "production", **options)
    @port = Integer(@server.await(%r{Listening on http://\S+:(\d+)$})[1])
  end

  def teardown
    @server.close
    super
  end

  def get(path) = Net::HTTP.get_response(URI("http://127.0.0.1:#{@port}#{path}"))

  def test_its_pages_and_its_streams
    return unless RailsApp::VERSION >= "8" # the first that sends a block as a body

    assert_match(/new EventSource/, get("/").body)
    Ringspun.run do |machine|
      clocks = Array.new(50) { machine.spin { first_event } }
      slow = Array.new(50) { machine.spin { JSON.parse(get("/slow").body) } }
      assert_equal [{ "waited" => 0.1, "locale" => "en" }], slow.map(&:await).uniq
      clocks.each { |clock| assert_match(/\Adata: \d\d:\d\d:\d\d\z/, clock.await) }
    end
    assert_equal "404", get("/nowhere").code
    assert_equal 0, @server.finish(:TERM).exitstatus
  end

  def first_event
    Ringspun.connect_tcp("127.0.0.1", @port) do |stream|
      stream.write("GET /clock HTTP/1.1\r\nhost: localhost\r\n\r\n")
      stream.read_until("\n\n")[/^data: .*$/]
    end
  end
end
