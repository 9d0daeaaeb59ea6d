# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/work"

# inputs: bench, Gemfile.lock

class BenchTest::PeersTest < Minitest::Test
  include BenchTest::Work

  def test_peers_and_floors_do_their_work
    work { |table| now?(table) ? table.contenders.reject(&:backend) : [] }
  end
end
