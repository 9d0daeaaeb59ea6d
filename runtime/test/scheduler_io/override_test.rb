# frozen_string_literal: true

require_relative "hook_case"
require "support/scheduled"

# Subclasses of Ringspun::Scheduler that do something around the hooks: what called them is to get what it would get without.
class SchedulerIOOverrideTest < HookCase
  include Scheduled

  HOOKS = %w[io_read io_write io_pread io_pwrite].freeze

  # One for each form of a way to `super`, most often with something in C on the way.
  WAYS = {
    alone: "super",
    in_a_block: "[1].map { super }.first",
    in_blocks: "[1].map { tap { break super } }.first",
    in_a_method_that_yields: "logged { super }",
    in_a_rescue: "begin; raise 'first'; rescue; super; ensure; itself; end"
  }.freeze

  def self.around(way)
    Class.new(Ringspun::Scheduler) do
      HOOKS.each { |hook| class_eval("def #{hook}(*) = (#{way})", __FILE__, __LINE__) }

      def logged = [1].each { |_| return yield }
    end
  end

  def self.around_that(parent) = Class.new(parent) { HOOKS.each { |hook| class_eval("def #{hook}(*) = super") } }

  WAYS.each do |name, way|
    scheduler = around(way)
    { "" => scheduler, "_and_an_override_of_that" => around_that(scheduler) }.each do |more, scheduler|
      define_method(:"test_what_waits_with_super_#{name}#{more}") do
        read, written = in_fiber(scheduler.new) do
          (one, other), (reader, writer) = pair, pipe
          fill(writer)
          machine.spin { machine.sleep(0.002).then { other.write("bytes") }.then { reader.readpartial(LARGE) } }
          [one.sysread(10), writer.syswrite("x")]
        end
        assert_equal ["bytes", 1], [read, written]
      end

      define_method(:"test_what_does_not_wait_with_super_#{name}#{more}") do
        assert_equal([:wait_readable, :wait_writable], in_fiber(scheduler.new) do
          reader, writer = pipe
          empty = reader.read_nonblock(1, exception: false)
          fill(writer)
          [empty, writer.write_nonblock("x", exception: false)]
        end)
      end
    end
  end
end
