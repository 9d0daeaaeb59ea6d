# frozen_string_literal: true

require "jobs_helper"

# The matchers, in the frameworks that they are for.
class MatchersTest < Minitest::Test
  include AnyBackend
  include Children

  GEMS = Gem.loaded_specs.values.flat_map(&:full_require_paths) +
         %w[rspec-core rspec-expectations rspec-support diff-lcs].flat_map { |name| Gem::Specification.find_by_name(name).full_require_paths }

  START = <<~RUBY
    $LOAD_PATH.unshift(*#{[File.expand_path("../../lib", __dir__), *GEMS].uniq.inspect})
    $VERBOSE = nil
  RUBY

  JOBS = <<~RUBY
    class Mail
      include Ringspun::Jobs::Job
    end
    class Order
      include Ringspun::Jobs::Job
    end
  RUBY

  RSPEC = <<~'RUBY'
    describe "have_enqueued" do
      it("takes a block") { expect { Mail.perform_async(1) }.to have_enqueued(Mail) }
      it("takes a class") { Mail.perform_async(1) and expect(Mail).to have_enqueued.with(1).once }
      it("begins without jobs") { expect(Mail).not_to have_enqueued }
      it("takes matchers") do
        expect { Mail.perform_async("abc", { "a" => 1 }) }.to have_enqueued(Mail).with(a_string_starting_with("a"), include("a" => 1))
      end
      it("takes a queue") { expect { Mail.set(queue: "slow").perform_async }.to have_enqueued(Mail).on(:slow) }
      it("takes times") do
        time = Time.now + 3600
        expect { Mail.perform_in(5) }.to have_enqueued(Mail).in(5)
        expect { Mail.perform_at(time) }.to have_enqueued(Mail).at(time)
        expect { 3.times { Mail.perform_async } }.to have_enqueued(Mail).exactly(3).times
      end
      it("is composed") do
        expect { Mail.perform_async && Order.perform_async }.to have_enqueued(Mail).and have_enqueued(Order)
      end
      it("sees only the block's") { Mail.perform_async and expect { Order.perform_async }.not_to have_enqueued(Mail) }

      it("FAILS arguments") { expect { Mail.perform_async(1) }.to have_enqueued(Mail).with(2) }
      it("FAILS times") { expect { Mail.perform_async }.to have_enqueued(Mail).twice }
      it("FAILS another time") { expect { Mail.perform_in(5) }.to have_enqueued(Mail).in(7) }
      it("FAILS another queue") { expect { Mail.perform_async }.to have_enqueued(Mail).on("slow") }
      it("FAILS not") { expect { Mail.perform_async }.not_to have_enqueued(Mail) }
      it("FAILS count of none") { expect { Mail.perform_async }.not_to have_enqueued(Mail).once }
      it("FAILS no class") { expect {}.to have_enqueued }
      it("FAILS another mode") { Ringspun::Jobs::Testing.inline! { expect(Mail).to have_enqueued } }
    end
  RUBY

  def test_rspec
    answer = ruby_child("#{START}require 'ringspun/jobs/rspec'\n#{JOBS}\n#{RSPEC}\n" \
                        "exit RSpec::Core::Runner.run(['--no-color', '--order', 'defined', File::NULL])")
    assert_match(/^16 examples, 8 failures$/, answer.out, answer.err)
    failed = answer.out.scan(/^rspec .* # (.*)$/).flatten
    assert_equal 8, failed.grep(/FAILS/).size, answer.out
    ["expected a job Mail, args: [2], found 0; these were enqueued:", "  Mail, args: [1], queue: \"default\"",
     "expected 2 jobs Mail, found 1", "expected no job Mail, found 1", "takes no count", "name the class of jobs once",
     "jobs are kept only in the mode fake!, and this is inline!"].each { |line| assert_includes answer.out, line }
  end

  MINITEST = <<~'RUBY'
    require "minitest/autorun"
    class MailTest < Minitest::Test
      i_suck_and_my_tests_are_order_dependent!
      def test_a = assert_enqueued(Mail, args: [1]) { Mail.perform_async(1) }
      def test_b = refute_enqueued(Mail)
      def test_c = assert_enqueued(Mail, count: 2) { Mail.perform_async }
    end
  RUBY

  def test_minitest
    answer = ruby_child("#{START}require 'ringspun/jobs/minitest'\n#{JOBS}\n#{MINITEST}")
    assert_match(/^3 runs, 3 assertions, 1 failures, 0 errors/, answer.out, answer.err)
    assert_includes answer.out, "expected 2 jobs Mail, found 1; these were enqueued:\n  Mail, args: [], queue: \"default\""
  end
end
