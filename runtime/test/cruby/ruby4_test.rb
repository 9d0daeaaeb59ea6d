# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/preloaded"
require "support/strands"

# Ruby 4, as far as an older one can be made to behave like it: by support/ruby4.rb, and by a library that stands before Ruby's.
class Ruby4Test < Minitest::Test
  include Strands

  ROOT = File.expand_path("../../..", __dir__)
  DOUBLE = File.join(ROOT, "runtime/test/support/ruby4.rb")

  # Whole files, with all that they check around each test: that no descriptor is left is half of the matter. Those of a line in
  # one process.
  CLOSING = %w[scheduler_io/closing_test.rb scheduler_io/closed_by_threads.rb].freeze
  FILES = {
    "4_0" => { closing: [*CLOSING, "evaluation/errors_test.rb"], core_ext_closing: %w[core_ext/closing.rb],
               forks: %w[cruby/forked_test.rb machine/fork_test.rb], debugging: %w[concurrently/debugging.rb] },
    "4_1" => { closing: [*CLOSING, "scheduler_io/files_test.rb"], core_ext_closing: %w[core_ext/closing.rb],
               stock: %w[stock/net_http_test.rb stock/process_test.rb stock/socket_test.rb stream/net_test.rb] }
  }.freeze

  FILES.each do |version, runs|
    runs.each do |name, files|
      define_method("test_as_on_ruby_#{version}_#{name}") do
        env = { "RUBYOPT" => "-r#{DOUBLE}", "RINGSPUN_DOUBLE" => version.tr("_", ".") }
        paths = files.map { |file| "runtime/test/#{file}" }
        output, status = Open3.capture2e(env, RbConfig.ruby, "-w", "bin/support/test_process.rb", *paths, chdir: ROOT)
        assert_predicate status, :success?, output
      end
    end
  end

  # --- what Ruby says of IO::Buffer ---

  READS = <<~'RUBY'
    reads = -> { IO.pipe.then { |reader, writer| Fiber.schedule { writer << "x" * 10 && writer.close }.then { p reader.read(10) } } }
  RUBY

  HEADERS = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |path| "-I#{path}" }.freeze

  def buffer_env = Preloaded.env(File.expand_path("warning_buffer.c", __dir__), *HEADERS)

  # With hooks, and not one of ours.
  BARE = <<~'RUBY'
    class Bare
      def block(*) = nil
      def unblock(*) = nil
      def kernel_sleep(*) = nil
      def io_wait(*) = nil
      def fiber_interrupt(*) = nil
      def fiber(&) = Fiber.new(blocking: false, &).tap(&:resume)
      def close = nil
      def io_read(*) = 0
    end
    Fiber.set_scheduler(Bare.new)
    Fiber.schedule { IO.pipe.first.read(10) }
  RUBY

  # Or the next test would prove nothing.
  def test_the_double_warns
    skip "this Ruby has no library that another could stand before" unless RbConfig::CONFIG["ENABLE_SHARED"] == "yes"

    assert_match(/IO::Buffer is experimental/, ruby_child(BARE, env: buffer_env, fresh: true).err)
  end

  def test_no_program_is_warned_of_the_buffers_of_hooks
    answer = ruby_child("require 'ringspun'\n#{READS}\nRingspun.run { reads.call }", env: buffer_env)
    assert_equal ["\"xxxxxxxxxx\"\n", ""], [answer.out, answer.err]
  end

  def test_a_program_s_own_warnings_are_as_it_wants_them
    [["true", /a new thing/], ["false", /\A\z/]].each do |wanted, said|
      answer = ruby_child(<<~RUBY, env: buffer_env)
        Warning[:experimental] = #{wanted}
        require "ringspun"
        p Warning[:experimental]
        warn "a new thing", category: :experimental
      RUBY
      assert_equal "#{wanted}\n", answer.out
      assert_match said, answer.err
    end
  end

  # Ruby says it once. Where it does not speak of those of hooks, it is said of the program's own.
  def test_a_program_s_own_first_buffer
    stock, ours = ["", "require 'ringspun'; "].map { |first| ruby_child("#{first}IO::Buffer.new(1)", fresh: true).err }
    assert_equal ruby_child(BARE, fresh: true).err.empty? ? stock : "", ours
  end
end
