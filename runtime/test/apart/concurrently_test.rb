# frozen_string_literal: true

require "test_helper"
require "support/apart"
require "tmpdir"

# `require "concurrently"`: the names of the gem `concurrently`, for programs that were written for it.
class ConcurrentlyTest < Minitest::Test
  FOLDER = "concurrently"
  include Apart

  # The one line of a Gemfile that its users change.
  def test_the_line_in_the_gemfile
    Dir.mktmpdir do |folder|
      runtime = File.expand_path("../..", __dir__)
      File.write(File.join(folder, "Gemfile"), %(gem "ringspun", require: "concurrently", path: "#{runtime}"\n))
      environment = { "RUBYOPT" => nil, "BUNDLE_GEMFILE" => File.join(folder, "Gemfile"), "BUNDLE_APP_CONFIG" => folder,
                      "BUNDLER_SETUP" => nil, "BUNDLE_LOCKFILE" => nil, "RUBYLIB" => nil }
      answer = ruby_child(<<~RUBY, env: environment)
        require "bundler/setup"
        Bundler.require
        require "concurrently" # as the program's files may do, or not
        p concurrently { wait 0.001 and :result }.await_result
        p Gem.loaded_specs.key?("ringspun")
      RUBY
      assert_equal [":result\ntrue\n", ""], [answer.out, answer.err]
    end
  end

  def test_who_asks_for_ringspun_gets_none_of_it
    answer = ruby_child("require 'ringspun/core_ext'; p defined?(Concurrently), concurrent_proc {}.class")
    assert_equal ["nil\nRingspun::ConcurrentProc\n", ""], [answer.out, answer.err]
  end
end
