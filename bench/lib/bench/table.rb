# frozen_string_literal: true

require "bench/contender_names"

module Bench
  ROOT = File.expand_path("../../..", __dir__)

  PEER_URING_MACHINE = File.join(ROOT, "bench/peers/uringmachine")
  PEER_EM_PG_CLIENT = File.join(ROOT, "bench/peers/em_pg_client")

  # Raised by a contender that cannot run here; the report prints the message.
  class Unavailable < StandardError; end

  # One row of a table: a label, and the sizes that differ from the table's own. Those in `fixed` nothing overrides.
  Row = Data.define(:label, :size, :skipped, :quick, :fixed) do
    # A row that some contenders skip is for the full report and for targets, not for the chart.
    def comparison? = skipped.empty?
  end

  # A contender: either `body`, a block that is called with a Meter and the sizes as keywords, or `program`, a C file of
  # bench/floor with `arguments` made from the sizes.
  #
  # role is :floor (what no library can beat), :peer (what users have today), :subject, :variant (ours in another form, which is
  # no peer of itself), or :reference (something that does less, and says what a number means).
  Contender = Data.define(:name, :role, :requires, :size, :body, :program, :arguments, :backend) do
    def floor? = role == :floor
    def peer? = role == :peer
    def ours? = %i[subject variant].include?(role)

    def on_ruby_4? = name.start_with?(URING_MACHINE)

    # The name by which a row skips it: Ringspun on all backends at once.
    def declared_as = (backend ? SUBJECT : name).to_sym
  end

  # How the work of a table grows: by `key`, one of its sizes, of which `what` is the name on a chart. A contender in `most` stops
  # there. `size` differs from the table's own; what `sizes` makes of the number nothing overrides.
  Scale = Data.define(:what, :key, :numbers, :most, :size, :sizes) do
    # @param contenders [Array<Contender>]
    # @return [Array<Row>]
    def rows(contenders)
      numbers.each_with_index.map do |number, index|
        beyond = contenders.select { |contender| most.fetch(contender.name, number) < number }
        Row.new(label: Metric.thousands(number), size:, quick: index.even?, fixed: { key => number, **sizes.call(number) },
                skipped: beyond.to_h { |contender| [contender.declared_as, "not asked of so many"] })
      end
    end
  end

  # The declaration in a table file. It holds no result and runs nothing, so both the parent and each child can load it.
  class Table
    # The file that declares it, which a child has to load.
    attr_reader :file

    attr_reader :name, :title, :about, :contenders, :targets, :columns, :syscalls, :against_floor, :against_peer, :form

    # What the rows of {#scaled} grow by, or nil.
    # @return [String, nil]
    attr_reader :grows_by

    def self.declare(name, file, &declaration)
      new(name, file).tap do |table|
        builder = Builder.new(table)
        builder.instance_exec(&declaration)
        Dir[File.join(file.delete_suffix(".rb"), "*.rb")].sort.each { |more| builder.instance_eval(File.read(more), more) }
      end
    end

    def initialize(name, file)
      @name = name
      @file = file
      @title = name
      @about = ""
      @size = {}
      @asked_size = {}
      @beforehand = ->(**) {}
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
      @form = :columns
    end

    def rows = @rows.empty? ? [Row.new(label: @name, size: {}, skipped: {}, quick: true, fixed: {})] : @rows
    def sizes = @size.keys
    def floors = @contenders.select(&:floor?)
    def floor = floors.first
    def peers = @contenders.select(&:peer?)
    def contender(name) = @contenders.find { |contender| contender.name == name }

    # The same table with Ringspun on these backends only, for --quick without some rows, of another size, and with the columns of
    # what perf counts.
    # @param rows [Array<String>, nil] labels of those that are to be left
    # @param contenders [Array<String>, nil] globs of those that are to be left
    # @param roles [Array<Symbol>, nil] of contenders that are to be left
    def narrowed(backends:, quick: false, sizes: {}, counters: false, rows: nil, contenders: nil, roles: nil)
      dup.tap do |table|
        table.narrow(backends, sizes, counters)
        table.leave_roles(roles) if roles
        table.leave(rows, contenders, quick)
      end
    end

    # The same work in rows that grow, or nil.
    # @return [Table, nil]
    def scaled = @scale && dup.tap { |table| table.grow }

    # Benchee takes one long sample.
    def samples(asked) = @form == :benchee ? 1 : asked

    def writes_files? = !@bytes_written.nil?
    def bytes_of(size) = @bytes_written.call(**size)

    # Whether the time of a server counts that samples have in common, so that they run one after the other.
    def counts_server? = @columns.intersect?(%i[backend backend_ns])

    # In the parent, before a sample of that size and its warm-up.
    def prepare(size) = [size, warm_up_size(size)].uniq.each { |chosen| @beforehand.call(**chosen) }

    # The metric of the chart: the first by which peers are compared.
    def headline = @against_peer.first

    def size_of(row, contender, quick: false)
      @size.merge(row.size, contender.size, quick ? @quick : {}, @asked_size, row.fixed)
    end

    # The warm-up is the same block on a small size, for method caches and the allocator.
    def warm_up_size(size) = size.merge(@warm_up)

    # Returns what is wrong with a contender's proof of work, or nil. Expected values are compared by ===, because the result of a
    # run of a fixed duration is not known beforehand.
    def complaint(size, proof)
      @proof.call(**size).each do |key, expected|
        actual = proof[key.to_s]
        return "wrong result: #{key} is #{actual.inspect}, not #{expected.inspect}" unless expected === actual
      end
      nil
    end

    protected

    def grow
      @rows = @scale.rows(@contenders)
      @grows_by = @scale.what
      @name = "#{@name}_by_#{@scale.what}"
      @title = "#{@title}, by #{@scale.what}"
      @targets = []
      @syscalls = nil
    end

    def leave(rows, contenders, quick)
      @rows = rows ? self.rows.select { |row| rows.include?(row.label) } : @rows.select { |row| row.quick || !quick }
      return unless contenders

      @contenders = @contenders.select { |contender| contenders.any? { |glob| File.fnmatch(glob, contender.name) } }
    end

    def leave_roles(roles)
      @contenders = @contenders.select { |contender| roles.include?(contender.role) }
    end

    def narrow(backends, sizes, counters)
      @asked_size = sizes.slice(*@size.keys)
      @contenders = @contenders.select { |contender| contender.backend.nil? || backends.include?(contender.backend) }
      @columns += Counters::EVENTS.values.map(&:to_sym) if counters
    end

    # The methods that a table file calls.
    class Builder
      def initialize(table)
        @table = table
      end

      def title(text) = set(:title, text)
      def about(text) = set(:about, text)
      def size(**size) = set(:size, size)

      # Smaller sizes for --quick, where only the order of magnitude counts.
      def quick(**size) = set(:quick, size)
      def warm_up(**size) = set(:warm_up, size)

      # The values which each contender's block must return as a Hash; the sample fails when one differs.
      def proof(&block) = set(:proof, block)
      def columns(*names) = set(:columns, names)
      def against_floor(metric) = set(:against_floor, metric)
      def against_peer(*metrics) = set(:against_peer, metrics)

      # How the terminal shows it; see TextReport::FORMS.
      def form(name) = set(:form, name)

      # Each sample writes that many bytes to files; see Workspace.settle.
      def writes_files(&bytes) = set(:bytes_written, bytes)

      # Prepares what the samples share, such as a server that takes long to start. Called in the parent before each sample.
      def beforehand(&block) = set(:beforehand, block)

      # Counts system calls per operation, by strace, as the difference between two sizes. The sizes differ in the key `varied`;
      # `fixed` are other keys that are smaller there, because tracing is slow. The block returns how many operations a size
      # makes; without it the key's value counts.
      def syscalls(varied, few:, many:, **fixed, &operations)
        set(:syscalls, { varied:, few:, many:, fixed:, operations: operations || ->(**size) { size.fetch(varied) } })
      end

      # `quick: false` leaves a row that says little more than its neighbours out of --quick.
      def row(label, skipped: {}, quick: true, **size)
        rows = @table.instance_variable_get(:@rows)
        rows << Row.new(label:, size:, skipped:, quick:, fixed: {})
      end

      # The subject is declared once and runs on each backend, or on those that are named.
      def contender(name, requires: nil, size: {}, backends: nil, &body)
        return add(name:, role: :peer, requires:, size:, body:) unless [SUBJECT, *VARIANTS].include?(name)

        (backends || (name == SUBJECT ? BACKENDS.keys : [MAIN_BACKEND])).each do |backend|
          name_there = Bench.on(backend, name)
          add(name: name_there, role: name_there == SUBJECT ? :subject : :variant, requires:, size:, body:, backend:)
        end
      end

      # UringMachine's own calls, once for each of its rings. The block is given the ring's options behind the meter.
      def uringmachine(&body)
        URING_MACHINE_RINGS.each do |name, ring|
          contender(name, requires: PEER_URING_MACHINE) { |meter, **size| body.call(meter, ring, **size) }
        end
      end

      # Stock Ruby on its fiber scheduler.
      def uringmachine_fs(&) = contender(URING_MACHINE_FS, requires: PEER_URING_MACHINE, &)

      # A floor written in Ruby: the same work without the thing that is measured.
      def bare(name, size: {}, &body) = add(name:, role: :floor, size:, body:)

      # A floor written in C, bench/floor/`program`; the block makes its arguments from the sizes.
      def floor(program, &arguments) = add(name: "floor", role: :floor, program:, arguments:)

      # The same work by the entries of a ring: the program is told so by its last argument.
      def ring_floor(program, &arguments)
        add(name: "ring floor", role: :floor, program:, arguments: ->(**size) { [*arguments.call(**size), "ring"] })
      end

      # A part of ours without Ruby, also in C.
      def variant(name, program, &arguments) = add(name:, role: :variant, program:, arguments:)

      # Ours, where no backend is to be chosen.
      def beside(name, requires: nil, size: {}, &body) = add(name:, role: :variant, requires:, size:, body:)

      # Ours in a table where it has another name than elsewhere, and no backend is to be chosen.
      def subject(name, requires: nil, size: {}, &body) = add(name:, role: :subject, requires:, size:, body:)

      def reference(name, requires: nil, size: {}, &body) = add(name:, role: :reference, requires:, size:, body:)

      # The same work as it grows, for the charts of --scaling.
      # @param most [Hash{String => Integer}] contender => up to where it can
      def scale(what, key, *numbers, most: {}, **size, &sizes)
        set(:scale, Scale.new(what:, key:, numbers:, most:, size:, sizes: sizes || ->(_) { {} }))
      end

      def targets(*sentences) = set(:targets, sentences.map { |sentence| Target.parse(sentence) })

      private

      def add(requires: nil, size: {}, body: nil, program: nil, arguments: nil, backend: nil, **rest)
        @table.contenders << Contender.new(requires:, size:, body:, program:, arguments:, backend:, **rest)
      end

      def set(name, value) = @table.instance_variable_set(:"@#{name}", value)
    end
  end

  # The order in which the report shows them: the tables of the published comparison first, then our own.
  ORDER = %w[pipe socketpair mutex_cpu mutex_io queue select channel switch timeout spawn first_run beside_cpu parked
             echo armed accept files timers ticker interrupt idle batch
             call_methods calls_awaiting wait_methods call_methods_waiting waiting_evaluations mruby mruby_memory
             http tls tls_echo keep_alive cluster http_hello http_sleep http_events http_post http_file http_idle http_new
             http_rails pg pg_small pg_away pg_tls pg_batch pg_writes
             pg_transactions pg_beside pg_parallel pg_streams pg_rows pg_memory
             pg_copy pg_notify pg_arrays lines idle_streams splice_forwarder jobs_enqueue jobs_seed jobs_work jobs_watched
             jobs_due jobs_calls jobs_cores jobs_waiting sqlite_enqueue sqlite_work sqlite_beside sqlite_start sqlite_depth
             active_job_enqueue active_job_calls sqlite_active_job].freeze

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
