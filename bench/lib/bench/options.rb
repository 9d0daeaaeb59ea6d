# frozen_string_literal: true

require "optparse"

module Bench
  # The options. Everything wrong with them is found before the first sample runs: a bench that fails after ten minutes because a
  # folder is missing has wasted them.
  class Options
    # What runs in the main rows, unless --contender or --backends says otherwise: Ringspun on one backend, all peers, the floors.
    MAIN_ROLES = %i[floor peer subject].freeze
    MAIN_BACKENDS_ONLY = [MAIN_BACKEND].freeze
    private_constant :MAIN_BACKENDS_ONLY

    SAMPLES = { quick: 1, default: 3, full: 5 }.freeze

    # Without sqpoll, which few machines should use.
    QUICK_BACKENDS = %w[uring epoll].freeze

    # [table, row], one for every kind of work. bin/bench reads the file as well, before there is a Ruby.
    MAIN_ROWS = File.readlines(File.join(ROOT, "bench/main_rows.tsv"), chomp: true).map { |line| line.split("\t").freeze }.freeze

    # Seconds: a contender whose first sample of a main row takes longer has no other one, or all would wait for the slowest.
    LONG_SAMPLE = 4.0

    # The same of peers with --brief.
    LONG_SAMPLE_OF_PEERS = 8.0

    attr_reader :mode, :only, :contenders, :sizes, :json, :markdown, :report, :from, :compare, :action, :seed

    def self.parse(arguments, table_names: Bench.tables.map(&:name))
      new(table_names).tap { |options| options.read(arguments) }
    end

    def initialize(table_names)
      @table_names = table_names
      @mode = :default
      @only = table_names
      @sizes = {}
      @report = Report::FOLDER
      @action = :run
      @seed = Random.new_seed % 1_000_000
    end

    def samples = SAMPLES.fetch(@mode)
    def yjit? = @yjit || false
    def counters? = @counters || false
    def scaling? = @scaling || false
    def quick? = @mode == :quick
    def full? = @mode == :full
    def help = parser.help

    def backends
      @backends || (MAIN_BACKENDS_ONLY if chosen_for_main?) || (quick? ? QUICK_BACKENDS : BACKENDS.keys)
    end

    # Whether only the main rows run, which is so unless others are asked for.
    def main? = @main || !(@all || @chosen_tables || scaling?)

    # What nobody has chosen leaves out what a first look can do without.
    def roles = chosen_for_main? ? MAIN_ROLES : nil

    def long_sample = main? ? LONG_SAMPLE : (LONG_SAMPLE_OF_PEERS if @brief)

    # Whose samples may be too long.
    def long_roles = main? ? nil : %i[peer]

    # Whether system calls are counted, which is slow.
    def traces? = !main? && !quick?

    # What {Table#narrowed} is to leave of a table.
    # @return [Hash]
    def narrowing(table)
      { backends:, quick: quick?, sizes:, counters: counters?, contenders:, roles:,
        rows: (MAIN_ROWS.filter_map { |name, label| label if name == table } if main?) }
    end

    def read(arguments)
      rest = parser.parse(arguments)
      raise Invalid, "unexpected argument: #{rest.first}" unless rest.empty?

      [@json, @markdown].compact.each { |path| check_writable(path) }
      check_folder(@report)
      narrow_to_main if main?
      check_yjit
      Report.read(@compare) if @compare
      check_places
      obstacle = Counters.obstacle if counters?
      raise Invalid, obstacle if obstacle
    rescue OptionParser::ParseError => error
      raise Invalid, error.message
    end

    private

    def chosen_for_main? = main? && !@contenders && !@backends

    def parser
      @parser ||= OptionParser.new("Usage: bin/bench [--matrix] [options]") do |parser|
        parser.separator("\nRuns the tables and prints each contender's time, its ratio to the floor and to the best peer.\n\n")
        add_modes(parser)
        add_selection(parser)
        add_outputs(parser)
        parser.separator("        --matrix                     first of all: on Ruby 3.4")
        parser.separator("        --no-system, --yes           for bin/setup: leave the system as it is; do not ask")
        parser.on("-h", "--help", "print this and stop") { @action = :help }
      end
    end

    def add_modes(parser)
      parser.on("--quick", "one small sample of each, some beside each other: not for judgement") { choose(:quick) }
      parser.on("--full", "medians of 5 samples, and the list of targets; default: medians of 3") { choose(:full) }
      parser.on("--brief", "one sample of a peer whose first takes more than #{LONG_SAMPLE_OF_PEERS.round} s") do
        @brief = true
      end
      parser.on("--seed N", Integer, "seed of the order in which contenders run, as an earlier run printed it") do |seed|
        @seed = seed
      end
    end

    def add_selection(parser)
      parser.on("--only TABLE[,TABLE]", Array, "only these tables; a name may be a glob such as 'mutex_*'") do |globs|
        @only = globs.flat_map { |glob| matching(glob) }.uniq
        @chosen_tables = true
      end
      parser.on("--main", "twelve rows, one of each kind of work: what runs without --all, --only and --scaling") { @main = true }
      parser.on("--all", "all tables") { @all = true }
      parser.on("--scaling", "how the cost of an operation grows: with strands, connections, callers, rows or processes") do
        @scaling = true
      end
      parser.on("--contender NAME[,NAME]", Array, "only these; a name may be a glob such as 'ringspun*'") do |globs|
        @contenders = globs
      end
      parser.on("--backends NAME[,NAME]", Array, "Ringspun on these only: #{BACKENDS.keys.join(", ")}; default: all,",
                "with --quick #{QUICK_BACKENDS.join(" and ")}, and for the main rows #{MAIN_BACKEND}") do |names|
        @backends = names.map { |name| backend(name) }.uniq
      end
      parser.on("--yjit", "on a Ruby with YJIT, which all programs of the bench then have") { @yjit = true }
      parser.on("--counters", "count instructions, cache misses and context switches too, by perf stat") { @counters = true }
      parser.on("--size NAME=N", /\A(\w+)=(\d+)\z/, "another size, of the tables that have it: streams=400") do |_, *size|
        @sizes[size.first.to_sym] = Integer(size.last, 10)
      end
      parser.on("--list", "print the tables and stop") { @action = :list }
    end

    def add_outputs(parser)
      parser.on("--json FILE", "write every sample, median and verdict; with --from those of all runs as one") do |path|
        @json = path
      end
      parser.on("--markdown FILE", "write the tables as docs/performance.md has them, between the marks of FILE") do |path|
        @markdown = path
      end
      parser.on("--report DIR", "where to write the page with all charts; default: tmp/report") { |path| @report = path }
      parser.on("--compare FILE", "what is faster or slower than in the JSON of an earlier run, beyond both spreads") do |path|
        @compare = path
      end
      parser.on("--from FILE[,FILE]", Array, "run nothing: write that page of the JSON of earlier runs, each table as the",
                "last of them has it") do |paths|
        @from = paths
        @action = :report
      end
    end

    def choose(mode)
      raise Invalid, "--quick and --full exclude each other" unless [:default, mode].include?(@mode)

      @mode = mode
    end

    def matching(glob)
      found = @table_names.select { |name| File.fnmatch(glob, name) }
      raise Invalid, "no table matches #{glob.inspect}; there are: #{@table_names.join(", ")}" if found.empty?

      found
    end

    def backend(name)
      return name if BACKENDS.key?(name)

      raise Invalid, "no backend is called #{name.inspect}; there are: #{BACKENDS.keys.join(", ")}"
    end

    def narrow_to_main
      raise Invalid, "--main and --scaling exclude each other: no main row grows" if scaling?
      raise Invalid, "--main and --all exclude each other" if @all

      @only &= MAIN_ROWS.map(&:first)
      raise Invalid, "no main row is in the tables of --only" if @only.empty?
    end

    # All tables that a page has are replaced, so all must be measured.
    def check_places
      return if @from || !@markdown || !File.exist?(@markdown)

      places = MarkdownReport.places(File.read(@markdown))
      missing = main? ? [] : places - @only
      raise Invalid, "#{@markdown} has a place for #{missing.first}, which --only leaves out: take another file" if missing.any?
      return if places.empty? || !(main? || @contenders || scaling?)

      raise Invalid, "#{@markdown} has places for whole tables, and the main rows, --contender and --scaling are parts of " \
                     "them: say --all, or take another file"
    end

    # bin/bench has started this Ruby with it, and RUBYOPT hands it on.
    def check_yjit
      return if !yjit? || Yjit.handed_on?

      raise Invalid, "--yjit needs a Ruby with YJIT, and #{RbConfig.ruby} (#{RUBY_VERSION}) has none, or was started without " \
                     "it. Start it by bin/bench; `bin/setup --yjit` finds such a Ruby or builds one, and RINGSPUN_RUBY names one"
    end

    # It is made when it is needed.
    def check_folder(path)
      raise Invalid, "cannot write to #{path}: it is no directory" if File.exist?(path) && !File.directory?(path)

      there = path
      there = File.dirname(there) until File.exist?(there)
      raise Invalid, "cannot write to #{path}: permission denied" unless File.writable?(there)
    end

    def check_writable(path)
      directory = File.dirname(path)
      raise Invalid, "cannot write #{path}: #{directory} is not a directory" unless File.directory?(directory)
      raise Invalid, "cannot write #{path}: it is a directory" if File.directory?(path)

      target = File.exist?(path) ? path : directory
      raise Invalid, "cannot write #{path}: permission denied" unless File.writable?(target)
    end
  end
end
