# frozen_string_literal: true

module Ringspun
  class << self
    # Yields the events of a file, or of a folder and the files in it, until it is deleted or moved away, or the block breaks. See
    # {Watch::Event}.
    #
    # May switch strands.
    #
    # @param path [String, Pathname]
    # @param kinds [Array<Symbol>] :created, :modified, :deleted, :moved, :attributes, which are the default, and :written (closed
    #   after it was open for writing), :opened, :closed, :read; :overflow and :unmounted are always yielded
    # @param recursive [Boolean] whether folders in it, also later ones, are watched too
    # @yieldparam event [Watch::Event]
    # @return [nil, Watch] nil; without a block, the watch, which the caller must close
    # @raise [UsageError, UnsupportedError, SystemCallError]
    # @raise [LimitError] when the system allows no more watches
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

  # The events of a file or a folder. See {Ringspun.watch}.
  #
  # The kernel keeps fs.inotify.max_queued_events events (inotify(7)). If they are not read in time, further ones are lost, and an
  # event of the kind :overflow says so. The program must look for changes itself then.
  class Watch
    # One event.
    class Event
      # @return [Symbol] :created, :modified, :deleted, :moved, :attributes, :written, :opened, :closed, :read, :overflow (events
      #   are lost) or :unmounted
      # @since 0.1.0
      attr_reader :kind

      # @return [String, nil] the path of the file or folder; for a move the new path, nil when that is not watched
      # @since 0.1.0
      attr_reader :path

      # @return [String, nil] for a move the old path, nil when that is not watched
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

      # @return [Boolean] whether it is an event of a folder
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

    # How long to wait for the second event of a move: the two are not always read together (inotify(7)).
    PAIR_SECONDS = 0.01
    ROOM = 65_536
    HEADER = 16
    Raw = Struct.new(:watch, :mask, :cookie, :name)
    private_constant :Inotify, :MASKS, :CHANGES, :MOVED_FROM, :MOVED_TO, :DELETED_ITSELF, :MOVED_ITSELF, :UNMOUNTED, :OVERFLOW,
                     :IGNORED, :ONLY_FOLDERS, :NO_LINKS, :FOLDER, :PAIR_SECONDS, :ROOM, :HEADER, :Raw

    # For a thread without a machine, which only asks whether there was something.
    #
    # @param path [String] of a file or a folder
    # @param kinds [Array<Symbol>] of {MASKS}
    # @return [IO] which has something to read after each event; the caller closes it, a forked child its own
    # @raise [LimitError, SystemCallError]
    # @api private
    def self.io(path, *kinds)
      inotify = Inotify.new.open
      inotify.add(path, kinds.reduce(0) { |bits, kind| bits | MASKS.fetch(kind) })
      opened = true
      IO.for_fd(inotify.release)
    ensure
      IO.for_fd(inotify.release).close if inotify && !opened
    end

    # @return [String] the path that is watched
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
      @reading = Ringspun::Mutex.new # one strand at a time reads, so that it gets both events of a move
      @ended = false
      open
    rescue TypeError, ArgumentError, EncodingError => error
      raise UsageError, "watch: expected a path (String or Pathname): #{error.message}"
    end

    # Yields one event after the other, until the watched file or folder is deleted or moved away.
    #
    # May switch strands.
    #
    # @param timeout [Numeric, nil] seconds for each event; nil: no limit
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

    # Waits for the next event. A cancellation or a timeout loses none. If several strands wait, each gets another event.
    #
    # May switch strands.
    #
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Event, nil] nil after the event that the watched file or folder was deleted or moved away
    # @raise [TimeoutError, LimitError]
    # @raise [ClosedError] after {#close}, and in a forked child
    # @since 0.1.0
    def next_event(timeout: nil)
      descriptor
      return @events.shift unless @events.empty?

      Net.within(@machine, timeout, "watch: no event") { @reading.synchronize { fetch while @events.empty? && !@ended } }
      @events.shift
    end

    # Closes the watch. A strand that waits for an event gets a ClosedError.
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

    # Also asks for the events of its own deletion and move, and in a tree for those needed to follow new folders.
    def mask
      asked = @kinds.reduce(0) { |bits, kind| bits | MASKS[kind] }
      asked |= MASKS[:created] | MASKS[:deleted] | MASKS[:moved] if @recursive
      asked | DELETED_ITSELF | MOVED_ITSELF
    end

    def open
      @inotify = Inotify.new.open
      @root = @inotify.add(@path, root_mask)
      @paths[@root] = @path
      @file = file
      folders_in(@path) { |folder| add_tree(folder) } if @recursive
      opened = true
    ensure
      close if @inotify && !opened
    end

    # The kernel says that a file is deleted when no process has it open any more. That it has lost a name is an event of its
    # attributes (inotify(7)).
    def root_mask = File.directory?(@path) ? @mask : @mask | MASKS[:attributes]

    # What is at the path now; nil: nothing.
    def file
      state = File.stat(@path)
      [state.dev, state.ino]
    rescue SystemCallError
      nil
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
      return note(:overflow, @path) if raw.mask.anybits?(OVERFLOW)
      return unless (folder = @paths[raw.watch])
      return translate_itself(raw) if raw.mask.anybits?(DELETED_ITSELF | MOVED_ITSELF | UNMOUNTED | IGNORED)

      path = raw.name.empty? ? folder : File.join(folder, raw.name)
      directory = raw.mask.anybits?(FOLDER)
      if raw.mask.anybits?(MOVED_FROM | MOVED_TO)
        translate_move(raw, path, directory)
      else
        kinds_of(raw.mask).each { |kind| translate_plain(kind, path, directory) }
        note_unlinked if raw.watch == @root && raw.name.empty? && raw.mask.anybits?(MASKS[:attributes])
      end
    end

    def note_unlinked
      now = file
      return if @ended || (now && now == @file)

      note(:deleted, @path)
      @ended = true
    end

    # An event may be of several kinds: a :written file is also :closed.
    def kinds_of(mask) = MASKS.filter_map { |kind, bits| kind if mask.anybits?(bits) }

    def translate_plain(kind, path, directory)
      return if kind == :created && @found.delete(path)

      @found.delete(path) if kind == :deleted
      note(kind, path, directory: directory)
      follow(path) if kind == :created && directory
    end

    # Only for the root: the other folders of a tree are reported by the watch of their parent.
    def translate_itself(raw)
      return forget(raw) unless raw.watch == @root
      return if @ended

      note(:deleted, @path) if raw.mask.anybits?(DELETED_ITSELF)
      note(:moved, nil, from: @path) if raw.mask.anybits?(MOVED_ITSELF)
      note(:unmounted, @path) if raw.mask.anybits?(UNMOUNTED)
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
      note(:moved, to, from: path, directory: directory)
      rename(path, to) if directory
    end

    def other_half(raw)
      at = @raw.index { |other| other.cookie == raw.cookie && other.mask.anybits?(MOVED_TO) && @paths.key?(other.watch) }
      at && @raw.delete_at(at)
    end

    def arrive(path, directory)
      note(:moved, path, directory: directory)
      follow(path) if directory
    end

    def leave(path, directory)
      note(:moved, nil, from: path, directory: directory)
      return unless directory && @recursive

      under(path).each_key do |watch|
        @paths.delete(watch)
        @inotify.remove(watch)
      end
    end

    def note(kind, path, from: nil, directory: false)
      wanted = @kinds.include?(kind) || %i[overflow unmounted].include?(kind)
      @events << Event.new(kind, path, from, directory) if wanted
    end

    # --- a tree ---

    def under(path) = @paths.select { |_, known| known == path || known.start_with?("#{path}/") }

    def rename(from, to)
      under(from).each { |watch, known| @paths[watch] = to + known.delete_prefix(from) }
    end

    # Watches a new folder. Files made in it before that are reported too, and only once (`@found`).
    def follow(folder)
      return unless @recursive

      add_tree(folder) do |path, directory|
        @found[path] = true
        note(:created, path, directory: directory)
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
