# frozen_string_literal: true

require "minitest/autorun"
require_relative "../../../runtime/test/house/ruby_rooms"

# The rooms of the jobs' library, each of which knows only those before it. Needs neither the extension nor a server.
class JobsRoomsTest < Minitest::Test
  FOLDER = File.expand_path("../../lib/ringspun/jobs", __dir__)

  # How people are told, what an error is, what no cancellation cuts short, and what is written down of a job; what is set; where
  # jobs are kept; how they come in, also by a schedule; how they run.
  ROOMS = %w[
    words errors shielded entry middleware lender notices tracing home config storage log enqueuer client cron child quarantine
    worker launcher
    metrics web cli testing minitest rspec active_job active_record railtie sidekiq
  ].freeze

  def texts = Dir["#{FOLDER}/**/*.rb"].sort.to_h { |path| [path.delete_prefix("#{FOLDER}/"), File.read(path)] }

  def test_every_file_of_a_room_knows_only_the_rooms_before_it
    rooms = RubyRooms.new(ROOMS, texts)
    assert_equal [[], []], [rooms.strangers, rooms.empty]
    assert_empty rooms.above
  end

  def test_the_library_loads_its_rooms_in_their_order
    required = File.read("#{FOLDER}.rb").scan(%r{^require_relative "jobs/(\w+)}).flatten
    assert_equal ROOMS & required, required.chunk_while { |one, other| one == other }.map(&:first)
  end

  def test_a_constant_a_method_and_a_file_of_a_later_room_are_found
    assert_above({ "entry/a.rb" => %w[J::Worker J::Worker::Run] }, "entry/a.rb" => "module J; Worker::Run && Worker; end")
    assert_above({ "entry/a.rb" => %w[J.storage] }, "entry/a.rb" => "module J; module A; J.storage; end; end")
    assert_above({ "entry/a.rb" => %w[worker/run.rb] }, "entry/a.rb" => "require_relative '../worker/run'")
    assert_above({ "entry/a.rb" => %w[J::Worker] }, "entry/a.rb" => "class J::A < J::Worker; end")
  end

  def test_what_is_beside_or_below_is_not_found
    assert_above({}, "worker/a.rb" => "class J::Worker; Run.new(A::B, J.storage, ::J::Worker); end",
                     "entry/a.rb" => "module J; class A; B = 1; Run = 2; Run && A.x; end; end")
  end

  private

  def assert_above(expected, more)
    texts = { "worker/run.rb" => "module J\n  class Worker\n    Run = Struct.new(:a)\n  end\nend",
              "worker/current.rb" => "module J\n  class << self\n    def storage = 1\n  end\nend", **more }
    assert_equal expected, RubyRooms.new(%w[entry worker], texts).above
  end
end
