# frozen_string_literal: true

require "http_helper"
require "json"
require "support/rails_site"

RailsSite.folder

# What an application is told at the start of its server.
class RailsSettingsTest < Minitest::Test
  include AnyBackend

  # For each setting what the server says, and whether others wait for their turn.
  TOLD = <<~'RUBY'
    around = Ringspun::HTTP.const_get(:Frameworks)
    app = Rails.application
    told = [nil, 5, 50, false, 0].map do |requests|
      app.config.ringspun_http.requests = requests
      errors = StringIO.new
      made = around.around(app, Ringspun::HTTP.const_get(:Telling).new(errors))
      [errors.string, made.equal?(app)]
    rescue Ringspun::UsageError => error
      [error.message, nil]
    end
    level = ActiveSupport::IsolatedExecutionState.isolation_level
    ActiveSupport::IsolatedExecutionState.isolation_level = :thread
    begin
      around.around(app, Ringspun::HTTP.const_get(:Telling).new($stderr))
    rescue Ringspun::UsageError => error
      puts JSON.generate([level, told, error.message])
    end
  RUBY

  def test_what_fits_the_database
    env = { **RailsSite.env, "RAILS_MAX_THREADS" => "5" }
    level, told, refused = JSON.parse(RailsApp.ruby(RailsSite.folder, *%w[-r ./config/environment -r stringio -e], TOLD, env:))
    word = RailsApp::VERSION >= "8.1" ? "max_connections" : "pool"
    assert_equal "fiber", level
    assert_match(/ 5 requests run at once, as the pool of the database primary has .*: set #{word} for primary in/, told[0][0])
    assert_equal ["", false], told[1]
    assert_match(/has 5 connections for 50 requests at once, .* set #{word}: 50 for primary in .*\.requests = 5$/, told[2][0])
    assert_match(/has 5 connections for any number of requests at once, /, told[3][0])
    assert_match(/must be an Integer above 0, or false for any number, got 0/, told[4][0])
    assert_equal [false, false, false, true, nil], told.map(&:last)
    assert_match(/set config\.active_support\.isolation_level = :fiber in config/, refused)
  end
end
