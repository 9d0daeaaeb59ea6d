# frozen_string_literal: true

module Bench
  ROOT = File.expand_path("../../..", __dir__)

  # The contender which the targets speak of. Its absence is a failure, that of a peer is only a remark.
  SUBJECT = "ringspun"

  # Raised by a contender that cannot run here, with the reason that the report prints.
  class Unavailable < StandardError; end

  # One row of a table: a label and the sizes in which it differs from the table's own.
  Row = Data.define(:label, :size, :skipped) do
    # A row that not everyone runs is for the full report and for a target, not for a chart of contenders.
    def comparison? = skipped.empty?
  end

  # Who runs: either `body`, a block called with a Meter and the sizes as keywords, or `program`, a C file of
  # bench/floor with `arguments` made from the sizes.
  #
  # role is :floor (what no library can beat), :peer (what users have today) or :subject.
  Contender = Data.define(:name, :role, :requires, :size, :body, :program, :arguments) do
    def floor? = role == :floor
    def peer? = role == :peer
    def subject? = role == :subject
  end

  # What a table file declares. It holds no result and runs nothing, so that both the parent and each child can
  # load it.
  class Table
    # Where it is declared: what a child has to load.
    attr_reader :file

    attr_reader :name, :title, :about, :contenders, :targets, :columns, :syscalls, :against_floor, :against_peer

    def self.declare(name, file, &declaration)
      new(name, file).tap { |table| Builder.new(table).instance_exec(&declaration) }
    end

    def initialize(name, file)
      @name = name
      @file = file
      @title = name
      @about = ""
      @size = {}
      @quick = {}
      @warm_up = {}
      @rows = []
      @contenders = []
      @targets = []
      @proof = ->(**) { {} }
      @columns = %i[user system total real]
      @against_floor = :total
      @against_peer = %i[real total]
      @bytes_written = nil
    end

    def rows = @rows.empty? ? [Row.new(label: @name, size: {}, skipped: {})] : @rows
    def floor = @contenders.find(&:floor?)
    def peers = @contenders.select(&:peer?)
    def contender(name) = @contenders.find { |contender| contender.name == name }

    def writes_files? = !@bytes_written.nil?
    def bytes_of(size) = @bytes_written.call(**size)

    # The first metric that peers are compared by is the one a chart can show.
    def headline = @against_peer.first

    def size_of(row, contender, quick: false)
      @size.merge(row.size, contender.size, quick ? @quick : {})
    end

    # The warm-up is the same block on a small size: methods, caches and the allocator have then seen the work.
    def warm_up_size(size) = size.merge(@warm_up)

    # Answers what is wrong with a contender's proof of work, or nil. An expected value may be anything that
    # answers to ===, because what a run of a fixed duration delivers is not known beforehand.
    def complaint(size, proof)
      @proof.call(**size).each do |key, expected|
        actual = proof[key.to_s]
        return "wrong result: #{key} is #{actual.inspect}, not #{expected.inspect}" unless expected === actual
      end
      nil
    end

    # The words a table file is written in.
    class Builder
      def initialize(table)
        @table = table
      end

      def title(text) = set(:title, text)
      def about(text) = set(:about, text)
      def size(**size) = set(:size, size)

      # Overrides for --quick, where only the order of magnitude counts.
      def quick(**size) = set(:quick, size)
      def warm_up(**size) = set(:warm_up, size)

      # The values which each contender's block must return as a Hash; the sample fails when one differs.
      def proof(&block) = set(:proof, block)
      def columns(*names) = set(:columns, names)
      def against_floor(metric) = set(:against_floor, metric)
      def against_peer(*metrics) = set(:against_peer, metrics)

      # Each sample writes that many bytes to files; see Workspace.settle.
      def writes_files(&bytes) = set(:bytes_written, bytes)

      # System calls per operation, counted with strace as the difference between two sizes. `operation` names
      # the size key that counts operations.
      def syscalls(operation, few:, many:) = set(:syscalls, { operation:, few:, many: })

      def row(label, skipped: {}, **size)
        rows = @table.instance_variable_get(:@rows)
        rows << Row.new(label:, size:, skipped:)
      end

      def contender(name, requires: nil, size: {}, &body)
        add(name:, role: name == SUBJECT ? :subject : :peer, requires:, size:, body:)
      end

      # A floor written in Ruby: the same work without the thing that is measured.
      def bare(name, size: {}, &body) = add(name:, role: :floor, size:, body:)

      # A floor written in C, bench/floor/`program`; the block makes its arguments from the sizes.
      def floor(program, &arguments) = add(name: "floor", role: :floor, program:, arguments:)

      def targets(*sentences) = set(:targets, sentences.map { |sentence| Target.parse(sentence) })

      private

      def add(requires: nil, size: {}, body: nil, program: nil, arguments: nil, **rest)
        @table.contenders << Contender.new(requires:, size:, body:, program:, arguments:, **rest)
      end

      def set(name, value) = @table.instance_variable_set(:"@#{name}", value)
    end
  end

  # The order in which the report shows them: the tables of the published comparison first, then our own.
  ORDER = %w[pipe socketpair mutex_cpu mutex_io queue switch timeout spawn beside_cpu parked].freeze

  @tables = []

  class << self
    attr_reader :tables

    def table(name, &declaration)
      @tables << Table.declare(name, caller_locations(1, 1).first.absolute_path, &declaration)
    end

    def load_tables(directory = File.join(ROOT, "bench/tables"))
      Dir[File.join(directory, "*.rb")].sort.each { |file| require file }
      @tables.sort_by! { |table| [ORDER.index(table.name) || ORDER.size, table.name] }
    end
  end
end
