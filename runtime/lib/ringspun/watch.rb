# frozen_string_literal: true

module Ringspun
  class << self
    # Yields what happens to a file, or to a folder and the files in it, until that itself is deleted or moved away, or the block
    # breaks. See {Watch::Event} for what is told.
    #
    # May switch strands.
    #
    # @param path [String, Pathname]
    # @param kinds [Array<Symbol>] :created, :modified, :deleted, :moved, :attributes, which are those of one that names none, and
    #   :written (closed by who could write), :opened, :closed, :read; :overflow and :unmounted are always told
    # @param recursive [Boolean] whether folders in it, and those to come, are watched as well
    # @yieldparam event [Watch::Event]
    # @return [nil, Watch] nil; without a block, the watch
    # @raise [UsageError, UnsupportedError, SystemCallError]
    # @raise [LimitError] when the system has no more watches
    # @since 0.1.0
    # @see https://man7.org/linux/man-pages/man7/inotify.7.html
    def watch(path, *kinds, recursive: false, &block)
      watch = Watch.new(path, kinds, recursive: recursive)
      return watch unless block

      begin
        watch.each(&block)
      ensure
        watch.close
      end
    end
  end

  # What happens to a file, or in a folder. See {Ringspun.watch}.
  #
  # The kernel keeps as many events as fs.inotify.max_queued_events says. Who takes them too slowly is told by one of the kind
  # :overflow that some are missing, and has to look for himself what has changed.
  class Watch
    # One event.
    class Event
      # @return [Symbol] :created, :modified, :deleted, :moved, :attributes, :written, :opened, :closed, :read, :overflow (some
      #   are missing) or :unmounted
      # @since 0.1.0
      attr_reader :kind

      # @return [String, nil] of what it is about, under the path that is watched; of a move its target, nil when that is not
      #   watched
      # @since 0.1.0
      attr_reader :path

      # @return [String, nil] of a move, where it was; nil when that is not watched
      # @since 0.1.0
      attr_reader :from

      # @api private
      def initialize(kind, path, from, directory)
        @kind = kind
        @path = path
        @from = from
        @directory = directory
        freeze
      end

      # @return [Boolean] whether it is about a folder
      # @since 0.1.0
      def directory? = @directory

      # @return [String] the last part of the path
      # @since 0.1.0
      def name = File.basename(path || from)

      # @return [String]
      # @since 0.1.0
      def inspect = "#<#{self.class} #{kind} #{path || "(out of sight)"}#{" from #{from}" if from}>"
    end

    # Bits of inotify(7).
    MASKS = { read: 0x1, modified: 0x2, attributes: 0x4, written: 0x8, closed: 0x18, opened: 0x20, created: 0x100,
              deleted: 0x200 | 0x400, moved: 0x40 | 0x80 | 0x800 }.freeze
    CHANGES = %i[created modified deleted moved attributes].freeze

    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    DELETED_ITSELF = 0x400
    MOVED_ITSELF = 0x800
    UNMOUNTED = 0x2000
    OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLY_FOLDERS = 0x1000000
    NO_LINKS = 0x2000000
    FOLDER = 0x40000000

    # The two halves of a move come one behind the other, but not always in one piece.
    PAIR_SECONDS = 0.01
    ROOM = 65_536
    HEADER = 16
    Raw = Struct.new(:watch, :mask, :cookie, :name)
    private_constant :Inotify, :MASKS, :CHANGES, :MOVED_FROM, :MOVED_TO, :DELETED_ITSELF, :MOVED_ITSELF, :UNMOUNTED, :OVERFLOW,
                     :IGNORED, :ONLY_FOLDERS, :NO_LINKS, :FOLDER, :PAIR_SECONDS, :ROOM, :HEADER, :Raw

    # @return [String] what is watched
    # @since 0.1.0
    attr_reader :path

    # @api private
    def initialize(path, kinds, recursive: false)
      @machine = Machine.current
      raise UnsupportedError, "watch: a simulated machine has no files of the kernel's" if @machine.backend.name == :sim

      @path = File.path(path)
      @kinds = check_kinds(kinds)
      @recursive = recursive
      @mask = mask
      @paths = {}
      @found = {}
      @raw = []
      @events = []
      @turn = Ringspun::Mutex.new # one fetches for all, and has both halves of a move
      @ended = false
      open
    rescue TypeError, ArgumentError => error
      raise UsageError, "watch: expected a path (String or Pathname): #{error.message}"
    end

    # Yields one event after the other, until what is watched is deleted or moved away.
    #
    # May switch strands.
    #
    # @param timeout [Numeric, nil] seconds that each may take
    # @yieldparam event [Event]
    # @return [nil]
    # @raise (see #next_event)
    # @since 0.1.0
    def each(timeout: nil)
      return to_enum(:each, timeout: timeout) unless block_given?

      while (event = next_event(timeout: timeout))
        yield event
      end
    end

    # Waits for the next event. Cancelled or out of time, it has lost none. Of several strands that wait each gets another one.
    #
    # May switch strands.
    #
    # @param timeout [Numeric, nil] seconds
    # @return [Event, nil] nil when what is watched is deleted or moved away, which the event before has said
    # @raise [TimeoutError, LimitError]
    # @raise [ClosedError] once it is closed, and in a forked child
    # @since 0.1.0
    def next_event(timeout: nil)
      descriptor
      return @events.shift unless @events.empty?

      Net.within(@machine, timeout, "watch: no event") { @turn.synchronize { fetch while @events.empty? && !@ended } }
      @events.shift
    end

    # Ends it. A strand that waits for an event gets a ClosedError.
    #
    # May switch strands.
    #
    # @return [nil] also when it is closed already
    # @since 0.1.0
    def close
      descriptor = @inotify.release
      @machine.close(descriptor) if descriptor && !@machine.closed?
    end

    # @return [Boolean]
    # @since 0.1.0
    def closed? = @inotify.descriptor.nil?

    # @return [String]
    # @since 0.1.0
    def inspect = "#<#{self.class} #{@path}#{" (closed)" if closed?}>"

    private

    def descriptor
      @inotify.descriptor || raise(ClosedError, "the watch is closed; a forked child has none of its parent's watches")
    end

    def check_kinds(kinds)
      unknown = kinds - MASKS.keys
      return kinds.empty? ? CHANGES : kinds if unknown.empty?

      raise UsageError, "watch: unknown kind #{unknown.first.inspect}; known are #{MASKS.keys.map(&:inspect).join(", ")}"
    end

    # Its own end is always asked for, and in a tree what is needed to follow it.
    def mask
      asked = @kinds.reduce(0) { |bits, kind| bits | MASKS[kind] }
      asked |= MASKS[:created] | MASKS[:deleted] | MASKS[:moved] if @recursive
      asked | DELETED_ITSELF | MOVED_ITSELF
    end

    def open
      @inotify = Inotify.new.open
      @root = @inotify.add(@path, @mask)
      @paths[@root] = @path
      folders_in(@path) { |folder| add_tree(folder) } if @recursive
      opened = true
    ensure
      close if @inotify && !opened
    end

    # --- from the kernel ---

    def fetch
      take if @raw.empty?
      take while half_a_move? && more?
      translate(@raw.shift) until @raw.empty?
    end

    def take
      buffer = String.new(capacity: ROOM)
      @machine.read(descriptor, buffer, ROOM)
      at = 0
      while at < buffer.bytesize
        watch, mask, cookie, length = buffer.byteslice(at, HEADER).unpack("lLLL")
        name = buffer.byteslice(at + HEADER, length).delete("\0").force_encoding(@path.encoding)
        @raw << Raw.new(watch, mask, cookie, name)
        at += HEADER + length
      end
    end

    def half_a_move? = @raw.last.mask.anybits?(MOVED_FROM)

    def more?
      @machine.timeout(PAIR_SECONDS) { @machine.poll(descriptor, :readable) }
    rescue TimeoutError
      false
    end

    # --- what it means ---

    def translate(raw)
      return tell(:overflow, @path) if raw.mask.anybits?(OVERFLOW)
      return unless (folder = @paths[raw.watch])
      return translate_itself(raw) if raw.mask.anybits?(DELETED_ITSELF | MOVED_ITSELF | UNMOUNTED | IGNORED)

      path = raw.name.empty? ? folder : File.join(folder, raw.name)
      directory = raw.mask.anybits?(FOLDER)
      if raw.mask.anybits?(MOVED_FROM | MOVED_TO)
        translate_move(raw, path, directory)
      else
        kinds_of(raw.mask).each { |kind| translate_plain(kind, path, directory) }
      end
    end

    # Closed by who could write is :written, and :closed as well.
    def kinds_of(mask) = MASKS.filter_map { |kind, bits| kind if mask.anybits?(bits) }

    def translate_plain(kind, path, directory)
      return if kind == :created && @found.delete(path)

      @found.delete(path) if kind == :deleted
      tell(kind, path, directory: directory)
      follow(path) if kind == :created && directory
    end

    # A folder in a tree is told of by the one that it is in.
    def translate_itself(raw)
      return forget(raw) unless raw.watch == @root

      tell(:deleted, @path) if raw.mask.anybits?(DELETED_ITSELF)
      tell(:moved, nil, from: @path) if raw.mask.anybits?(MOVED_ITSELF)
      tell(:unmounted, @path) if raw.mask.anybits?(UNMOUNTED)
      @ended = true
    end

    def forget(raw)
      @paths.delete(raw.watch) if raw.mask.anybits?(IGNORED)
    end

    def translate_move(raw, path, directory)
      return arrive(path, directory) if raw.mask.anybits?(MOVED_TO)

      @found.delete(path)
      target = other_half(raw)
      return leave(path, directory) unless target

      to = File.join(@paths[target.watch], target.name)
      tell(:moved, to, from: path, directory: directory)
      rename(path, to) if directory
    end

    def other_half(raw)
      at = @raw.index { |other| other.cookie == raw.cookie && other.mask.anybits?(MOVED_TO) && @paths.key?(other.watch) }
      at && @raw.delete_at(at)
    end

    def arrive(path, directory)
      tell(:moved, path, directory: directory)
      follow(path) if directory
    end

    def leave(path, directory)
      tell(:moved, nil, from: path, directory: directory)
      return unless directory && @recursive

      under(path).each_key do |watch|
        @paths.delete(watch)
        @inotify.remove(watch)
      end
    end

    def tell(kind, path, from: nil, directory: false)
      wanted = @kinds.include?(kind) || %i[overflow unmounted].include?(kind)
      @events << Event.new(kind, path, from, directory) if wanted
    end

    # --- a tree ---

    def under(path) = @paths.select { |_, known| known == path || known.start_with?("#{path}/") }

    def rename(from, to)
      under(from).each { |watch, known| @paths[watch] = to + known.delete_prefix(from) }
    end

    # What was made in there before it was watched is told as well, and once.
    def follow(folder)
      return unless @recursive

      add_tree(folder) do |path, directory|
        @found[path] = true
        tell(:created, path, directory: directory)
      end
    end

    def add_tree(folder, &found)
      @paths[@inotify.add(folder, @mask | ONLY_FOLDERS | NO_LINKS)] = folder
      Dir.each_child(folder) do |name|
        path = File.join(folder, name)
        directory = File.lstat(path).directory?
        found&.call(path, directory)
        add_tree(path, &found) if directory
      rescue Errno::ENOENT
        next
      end
    rescue Errno::ENOENT, Errno::ENOTDIR, Errno::ELOOP
      nil # gone already
    end

    def folders_in(path)
      return unless File.directory?(path)

      Dir.each_child(path) do |name|
        inner = File.join(path, name)
        yield inner if File.lstat(inner).directory?
      rescue Errno::ENOENT
        next
      end
    end
  end
end
