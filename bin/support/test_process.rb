# frozen_string_literal: true

# Runs the named Minitest files in this process. Options (-n, --seed, -v) go to Minitest. What its supervisor wants is in the
# environment, and no child's business. RINGSPUN_ONE_TEST_IN=n: not all tests, but those of the day.

require "bundler/setup"
# A newer RubyGems would load Bundler by this in every child, also if a test has removed it from RUBYOPT.
ENV.delete("BUNDLER_SETUP")

root = File.expand_path("../..", __dir__)
%w[http postgres jobs runtime].product(%w[test lib]) { |gem, folder| $LOAD_PATH.unshift(File.join(root, gem, folder)) }

files = ARGV.select { |argument| argument.end_with?(".rb") }
ARGV.replace(ARGV - files)

require "minitest/autorun"
require "support/supervised"
if (parts = ENV.delete("RINGSPUN_ONE_TEST_IN"))
  require "support/tests_of_the_day"
  share = TestsOfTheDay.new(parts)
end
Supervised.start(ENV.delete("RINGSPUN_SUPERVISOR"), share:, only: ENV.delete("RINGSPUN_TESTS_ONLY"),
                                                    except: ENV.delete("RINGSPUN_TESTS_EXCEPT"))
files.each { |file| require File.expand_path(file) }

# For Minitest a run without any test is a success.
abort "no test ran" if Minitest::Runnable.runnables.all? { |test_class| test_class.methods_matching(/\Atest_/).empty? }
