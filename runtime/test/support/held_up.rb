# frozen_string_literal: true

require "rbconfig"
require "zlib"

# RINGSPUN_HELD_UP=seed: each test is held up at some of its lines, as on a machine that has no processor for it just then. A test
# that fails by this relies on the clock where it should rely on a gate, a state, or virtual time.
#
# The lines are drawn from the seed and the name of the test, so one seed has the same lines again, as long as the test takes the
# same way. Lines of the tests and of our own Ruby count, on all threads. So do those of children: one that was forked is held up
# at what is left, and a fresh Ruby of `ruby_child` at lines of its own.
module HeldUp
  SEED = ENV.fetch("RINGSPUN_HELD_UP", nil)
  TIMES_MAX = 4
  MILLISECONDS = 20
  # From one time to the next, in the mean of the slowest pace: where only lines of tests count, and where all do.
  LINES_MAX = { true => 100, false => 1000 }.freeze

  ROOT = File.expand_path("../../..", __dir__)
  LIBRARIES, TESTS = %w[lib test].map { |folder| %w[runtime jobs postgres http].map { |gem| "#{ROOT}/#{gem}/#{folder}/" } }
  TESTS << "-e" # the program of a child
  # What stands around every test.
  LEFT_OUT = %w[held_up supervised gc_stress skips leaks].map { |name| "/test/support/#{name}.rb" }.freeze

  SOURCE = File.read(File.expand_path("held_up.c", __dir__))
  LIBRARY = "#{ROOT}/tmp/held_up/#{RUBY_VERSION}-#{Zlib.crc32(SOURCE)}/held_up.so".freeze

  class << self
    # Loads the library, which is compiled once.
    def prepare
      compile unless File.exist?(LIBRARY)
      require LIBRARY
    end

    # How many lines run from one time to the next, each with whether only those of tests count: else a test that begins with a
    # thousand lines of ours would never be held up in its own. How many lines a test has is not known before; so the pace is
    # drawn as well, from what ends within the first lines to what gets to late ones.
    #
    # @return [Array<(Integer, Boolean)>]
    def gaps(seed, name)
      random = Random.new(Zlib.crc32("#{seed} #{name}"))
      rate = random.rand
      Array.new(TIMES_MAX) do
        only_tests = random.rand(2).zero?
        [random.rand(1..(2 * (LINES_MAX[only_tests]**rate)).to_i), only_tests]
      end
    end

    # The process is held up from now on.
    def start(gaps) = start_at_lines(gaps, MILLISECONDS, TESTS, LIBRARIES, LEFT_OUT)

    # @return [Array<String>] the lines at which it was held up
    def stop = stop_at_lines.map { |path, line| "#{path.delete_prefix("#{ROOT}/")}:#{line}" }

    # The environment in which a child loads this file, to be held up too.
    def for_child(name, seed: SEED) = seed ? { "RINGSPUN_HELD_UP_CHILD" => name } : {}

    private

    def compile
      require "fileutils"
      require "open3"
      FileUtils.mkdir_p(File.dirname(LIBRARY))
      mine = "#{LIBRARY}.#{Process.pid}" # a neighbour may do the same
      headers = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |folder| "-I#{folder}" }
      output, status = Open3.capture2e(RbConfig::CONFIG["CC"].split.first, *%w[-std=gnu11 -Wall -Werror -O1 -shared -fPIC],
                                       *headers, *%w[-x c -o], mine, "-", stdin_data: SOURCE)
      raise output unless status.success?

      File.rename(mine, LIBRARY)
    end
  end

  def before_setup
    super
    HeldUp.start(HeldUp.gaps(SEED, held_up_name)) if SEED
  end

  def after_teardown
    @held_up_at = HeldUp.stop if SEED
    super
  end

  def run
    super
  ensure
    warn "", held_up_report if SEED && !passed? && !skipped?
  end

  private

  def held_up_name = "#{self.class}##{name}"

  def held_up_report
    file = method(name).source_location.first.delete_prefix("#{ROOT}/")
    "#{held_up_name} was held up at #{@held_up_at&.join(", ")}.\n" \
      "Again: bin/bundle exec rake test:held_up SEED=#{SEED} FILES=#{file}\n" \
      "or: RINGSPUN_HELD_UP=#{SEED} bin/test #{file} -n #{name}"
  end
end

HeldUp.prepare if HeldUp::SEED
child = ENV.fetch("RINGSPUN_HELD_UP_CHILD", nil)
HeldUp.start(HeldUp.gaps(HeldUp::SEED, child)) if HeldUp::SEED && child
