# frozen_string_literal: true

require "http_helper"
require "fileutils"
require "net/http"
require "support/heard_process"
require "tmpdir"

# Programs of other frameworks, each as its users write it, by rackup. Their gems are those of the Gemfile beside.
class HTTPFrameworksTest < Minitest::Test
  include AnyBackend

  GEMFILE = File.expand_path("Gemfile", __dir__)
  ROOT = File.expand_path("../../..", __dir__)
  START_SECONDS = 120

  # Each answers with its parameter, after a wait, with what was posted, and with a stream.
  %w[sinatra roda hanami].each do |name|
    define_method("test_#{name}") do
      Dir.mktmpdir do |folder|
        FileUtils.cp(File.join(__dir__, "#{name}.ru"), File.join(folder, "config.ru"))
        serving(folder) { |port| answers(port) }
      end
    end
  end

  # Without the Bundler of the tests, and with that of the programs.
  def env
    { "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLER_SETUP" => nil, "BUNDLE_BIN_PATH" => nil, "BUNDLE_GEMFILE" => GEMFILE,
      "BUNDLE_PATH" => File.join(ROOT, "vendor/bundle"), "BUNDLE_VERSION" => "system", "BUNDLE_FROZEN" => "true",
      "HANAMI_ENV" => "production" }
  end

  RACKUP = ["-rbundler/setup", "-e", 'load Gem.bin_path("rackup", "rackup")', "--"].freeze

  def serving(folder)
    options = { chdir: folder, seconds: START_SECONDS, env: }
    command = HeardProcess.new(*RACKUP, "-s", "ringspun", "-o", "127.0.0.1", "-p", "0", "-E", "production", **options)
    yield Integer(command.await(%r{Listening on http://\S+:(\d+)$})[1])
    assert_equal 0, command.finish.exitstatus, command.text
  ensure
    command&.close
  end

  def answers(port)
    uri = URI("http://127.0.0.1:#{port}")
    hellos = Ringspun.run do |machine|
      Array.new(50) { |number| machine.spin { Net::HTTP.get(uri + "/hello/#{number}") } }.map(&:await)
    end
    assert_equal Array.new(50) { |number| "hello, #{number}" }, hellos
    body = Random.new(1).bytes(200_000)
    assert Net::HTTP.post(uri + "/echo", body, "content-type" => "application/octet-stream").body == body # and no page of it
    assert_equal "0 1 2 ", Net::HTTP.get(uri + "/stream")
  end
end
