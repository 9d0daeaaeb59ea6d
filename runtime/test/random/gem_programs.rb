# frozen_string_literal: true

require "json"
require "support/shrink"

# Random programs of the API of the gem `concurrently`. Each is run with the gem and with the file of ours that has its name. Both
# must log the same.
class GemPrograms
  PLAYER = File.expand_path("gem_programs/player.rb", __dir__)
  GEM = File.expand_path("../../../bench/peers/concurrently.rb", __dir__)
  PROCS = 6
  STEPS = (3..30)
  FORMS = %w[call call_nonblock call_nonblock call_detached call_detached call_and_forget].freeze
  # In virtual time those of the latter kind take none.
  SECONDS = [0, 0, 0, 1, 1, 2].freeze

  # @attr steps [Array] of [proc, kind, arguments ...]
  Program = Data.define(:seed, :virtual, :steps) do
    def line = JSON.generate({ virtual:, steps: })
    def to_s = steps.map { |step| "  #{step.inspect}" }.join("\n")
  end

  # The gem fails where it resumes an evaluation twice in one tick, for instance since two were concluded that it waits for by
  # await_fastest. The run that has brought the second result ends with this error. And where a run concludes the evaluation that
  # waits in a `call` for itself: that one is unwound by us.
  FAULT_OF_GEM = /\A(?!\S+ \d+ resume =>).*already scheduled|=> FiberError\(attempt to resume a resumed fiber/

  # @return [Program]
  def self.draw(seed, virtual:) = Program.new(seed:, virtual:, steps: Drawing.new(seed, virtual).steps)

  # @yieldparam programs [GemPrograms]
  def self.open
    programs = new
    yield programs
  ensure
    programs&.close
  end

  # With the gem, and with ours.
  attr_reader :players

  def initialize
    @players = [GEM, "concurrently"].map { |library| Player.new(library) }
  end

  def close = @players.each(&:close)

  # @param program [Program]
  # @return [String, nil] the logs beside each other, where they are not the same
  def difference(program)
    of_gem, ours = @players.map { |player| player.play(program) }
    return if of_gem == ours || of_gem.grep(FAULT_OF_GEM).any?

    pairs = Array.new([of_gem.size, ours.size].max) { |at| [of_gem[at], ours[at]] }
    pairs.map { |gem, own| format("%<mark>s %<gem>-60s | %<own>s", mark: gem == own ? " " : "!", gem:, own:) }.join("\n")
  end

  # @return [String] what the smallest program is in which the two differ, and how
  def explain(program)
    steps = Shrink.smallest(program.steps) { |some| difference(program.with(steps: some)) }
    smallest = program.with(steps:)
    "#{smallest}\nwhat the gem logs, and what we do:\n#{difference(smallest)}"
  end

  # Draws the steps of a program.
  class Drawing
    KINDS = { start: 6, wait: 4, await_resume: 2, await: 3, await_fastest: 1, resume: 3, conclude: 2, conclude_itself: 1,
              raise: 1, concluded: 1, waiting: 1, put: 1, get: 1 }.freeze
    IO_KINDS = { await_readable: 3, await_writable: 1, write: 3, read: 2 }.freeze

    def initialize(seed, virtual)
      @random = Random.new(seed)
      @virtual = virtual
    end

    def steps
      kinds = (@virtual ? KINDS : KINDS.merge(IO_KINDS)).flat_map { |kind, weight| [kind] * weight }
      Array.new(@random.rand(STEPS)) do
        owner = [0, 0, @random.rand(0..PROCS)].sample(random: @random)
        step(owner, kinds.sample(random: @random))
      end
    end

    private

    def any = @random.rand(1..PROCS)
    def seconds = @virtual ? SECONDS.sample(random: @random) : 0
    def one_in(count) = @random.rand(count).zero?
    def limit = one_in(2) ? [nil, nil] : [seconds, one_in(2) ? "late" : nil]
    def pipe = @random.rand(0..1)

    # A proc starts only those behind it, so that each program ends.
    def step(owner, kind)
      return start(owner) if kind == :start

      [owner, kind.to_s, *arguments(kind)]
    end

    def start(owner)
      return [owner, "wait", seconds] if owner == PROCS

      number = @random.rand((owner + 1)..PROCS)
      [owner, FORMS.sample(random: @random), number, number != 2]
    end

    def arguments(kind)
      case kind
      when :wait then [seconds]
      when :await_resume then limit
      when :await then [any, *limit, one_in(3)]
      when :await_fastest then [Array.new(@random.rand(2..3)) { any }, *limit]
      when :resume then [any, "resumed #{@random.rand(10)}"]
      when :conclude then [any, one_in(4) ? "error" : "concluded #{@random.rand(10)}"]
      when :conclude_itself then ["own"]
      when :raise then ["broken"]
      when :concluded, :waiting then [any]
      when :put then ["key", @random.rand(10)]
      when :get then [any, "key"]
      when :await_readable then [pipe, @random.rand(0..4), *limit]
      when :await_writable then [pipe, *limit]
      when :write, :read then [pipe]
      end
    end
  end

  # A process that plays programs, one after the other.
  class Player
    def initialize(library)
      environment = { "RUBYOPT" => "-rbundler/setup", "RINGSPUN_GC_STRESS" => nil }
      code = "$VERBOSE = nil; require ARGV.shift; $PROGRAM_NAME = ARGV.first; load ARGV.shift"
      folders = $LOAD_PATH.flat_map { |folder| ["-I", folder] }
      @pipe = IO.popen([environment, RbConfig.ruby, *folders, "-e", code, library, PLAYER], "r+")
    end

    # @param program [Program]
    # @return [Array<String>] its log
    def play(program)
      @pipe.puts(program.line)
      @pipe.flush
      JSON.parse(@pipe.gets || raise("the process has ended"))
    end

    def close = @pipe.close
  end
end
