# frozen_string_literal: true

require "timeout"

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # Locks of the kernel on bytes of a file beside the database: the turn to write, one that all share who have the database
        # open, and one for each node that lives. The kernel releases those of a process when it ends in whatever way. All
        # storages of a process share one file. In the file stands which files are the database, see {Pairing}. See
        # https://man7.org/linux/man-pages/man2/F_GETLK.2const.html
        #
        # A file that somebody removes is made again at the next turn. Until all have seen that, there are two of them, and a node
        # is held in the one that its process has open: so who looks for it must know in which, see {#number}. Turns of both are
        # only less fair, for SQLite has locks of its own.
        #
        # The turn belongs to the process. No child inherits it, so a process that outlives its parent holds nothing of it. Any
        # code of the process that closes the file, such as a copy of the folder, loses it. Then the locks of SQLite keep order.
        # The lock of a node belongs to the open file, which no such code closes, and which a forked child closes at once.
        #
        # @api private
        class LockFile
          # Linux has these on all 64-bit processors that Ruby runs on. The library with the name is one that Bundler may hide.
          F_GETLK = 5
          F_SETLK = 6
          F_SETLKW = 7
          F_OFD_GETLK = 36
          F_OFD_SETLK = 37
          F_RDLCK = 0
          F_WRLCK = 1
          F_UNLCK = 2
          LAYOUT = "s!s!x4q!q!i!x4" # struct flock: type, whence, start, length, pid
          # Whoever waits for the turn holds the first byte, so that the one who has had it last comes after.
          ENTRANCE = 0
          TURN = 1
          # Whoever has the database open shares it.
          USERS = 2
          NODES = 16
          # The bytes of the file that say which files are the database, see {FileSet#text}: seven numbers fit.
          RECORD_BYTES = 160
          # What SQLite takes for a number; that of a file may have 64 bits.
          NUMBERS = (1 << 62) - 1
          # Seconds between tries where the kernel takes two threads of this process, in turns of two files, for one.
          DEADLOCK_SECONDS = 0.001
          # A process that is stopped in its turn gives it back only when it goes on or ends.
          PATIENCE_SECONDS = 30
          FOR_ALL = "all processes that share it must be able to write to it, by one user or by its mode"
          private_constant :F_GETLK, :F_SETLK, :F_SETLKW, :F_OFD_GETLK, :F_OFD_SETLK, :F_RDLCK, :F_WRLCK, :F_UNLCK, :LAYOUT,
                           :ENTRANCE, :TURN, :USERS, :NODES, :RECORD_BYTES, :NUMBERS, :DEADLOCK_SECONDS, :PATIENCE_SECONDS,
                           :FOR_ALL

          # Ends the wait for a turn.
          class Kept < StandardError
          end
          private_constant :Kept

          @patience = PATIENCE_SECONDS
          @all = {}
          @lock = Thread::Mutex.new

          class << self
            # @return [Numeric] seconds to wait for a turn
            attr_accessor :patience

            # @param path [String] of the database
            # @return [LockFile] to be closed by each who has opened it
            def open(path)
              Fiber.blocking do
                @lock.synchronize do
                  forget_parents
                  file = @all[path.b] ||= new("#{path}-locks") # in whatever encoding
                  file.users += 1
                  file
                end
              end
            end

            # Shares bytes of another file with whoever shares them, or no longer.
            #
            # @param io [IO]
            # @return [nil]
            def share(io, first, length, shared: true)
              io.fcntl(F_OFD_SETLK, [shared ? F_RDLCK : F_UNLCK, 0, first, length, 0].pack(LAYOUT))
              nil
            end

            # @api private
            def close(file)
              Fiber.blocking do
                @lock.synchronize do
                  forget_parents
                  file.users -= 1
                  next if file.users.positive?

                  @all.delete_if { |_, one| one.equal?(file) }
                  file.release
                end
              end
              nil
            end

            private

            # In a forked child nothing of the parent's is held.
            def forget_parents
              return if @pid == Process.pid

              @all = {}
              @pid = Process.pid
            end
          end

          attr_accessor :users

          def initialize(path)
            @path = path
            @users = 0
            @inside = Thread::Mutex.new
            @held = {}
            @opened = {}.compare_by_identity
            @opening = Thread::Mutex.new # the threads that read and write open and close at the same time
            open
          end

          # Waits for the turn. Only threads that may be held up call it.
          #
          # @yield while no other process, and no other thread of this one, has the turn
          # @raise [UnavailableError] the file has been removed, and cannot be made again; or another process keeps the turn
          def turn
            @inside.synchronize do
              take_turn
              until same_file?
                unlock(TURN)
                open_again
                take_turn
              end
              yield
            ensure
              unlock(TURN)
            end
          end

          # Opens the file that has the name, unless it is the same. Only threads that may be held up call it.
          #
          # @return [nil]
          # @raise (see turn)
          def renew
            turn { nil } unless same_file?
          end

          # Waits for nobody.
          #
          # @yield if no other process, and no other thread of this one, has the turn
          # @return [nil]
          def try_turn
            return unless @inside.try_lock

            begin
              yield if set(F_SETLK, F_WRLCK, TURN) && same_file?
            ensure
              unlock(TURN)
              @inside.unlock
            end
            nil
          end

          # @return [Integer] which file it is. No other one has that number while anybody has this one open
          def number = @identity.last & NUMBERS

          # @param number [Integer] of a node
          # @return [Boolean] whether this process holds the node's lock now
          def hold(number) = @held[number] ||= set(F_OFD_SETLK, F_WRLCK, NODES + number)

          # @return [nil]
          def let_go(number)
            set(F_OFD_SETLK, F_UNLCK, NODES + number) if @held.delete(number)
            nil
          end

          # @return [nil]
          def let_all_go
            held.each { |number| let_go(number) }
            nil
          end

          # @return [Array<Integer>] the nodes whose locks this process holds
          def held = @held.keys

          # @return [Boolean] whether any process holds the node's lock in this file
          def held?(number)
            return true if @held.key?(number)

            request = pack(F_WRLCK, NODES + number)
            @io.fcntl(F_OFD_GETLK, request)
            request.unpack1(LAYOUT) != F_UNLCK
          end

          # @return [String] which files all who have the database open have, as was last noted; empty: nobody has noted any
          def record
            @io.pread(RECORD_BYTES, 0).rstrip
          rescue EOFError
            ""
          end

          # To be called in a turn.
          #
          # @param text [String]
          def record=(text)
            @io.pwrite(text.ljust(RECORD_BYTES), 0)
          end

          # Notes that a connection of this process has the database open.
          #
          # @param who [Object] the connection
          # @param text [String] of its files
          # @return [nil]
          def opened(who, text)
            @opening.synchronize do
              set(F_OFD_SETLK, F_RDLCK, USERS) if @opened.empty?
              @opened[who] = text
            end
            nil
          end

          # To be called before it is closed.
          #
          # @return [nil]
          def closed(who)
            @opening.synchronize { set(F_OFD_SETLK, F_UNLCK, USERS) if @opened.delete(who) && @opened.empty? }
            nil
          end

          # @return [Array<String>] the files of the connections of this process
          def opened_here = @opened.values

          # @return [Boolean] whether any other process has the database open by a storage
          def opened_elsewhere?
            request = pack(F_WRLCK, USERS)
            @io.fcntl(F_OFD_GETLK, request)
            request.unpack1(LAYOUT) != F_UNLCK
          end

          # @return [nil]
          def close = LockFile.close(self)

          # @api private
          def release = @io.close

          # In a forked child, which holds none of these locks.
          #
          # @return [nil]
          def abandon = release

          private

          def open
            open_file
          rescue *Location::FOR_GOOD => error
            raise ConfigError, "#{@path} cannot be used: #{error.message}; #{FOR_ALL}"
          rescue SystemCallError => error
            raise UnavailableError, "#{@path} cannot be opened: #{error.message}"
          end

          # Whoever comes now locks another file. What is held here is held there, too, unless a new database has it otherwise.
          # A folder that is moved or mounted anew is gone for a moment only.
          def open_again
            before = @io
            @opening.synchronize do
              open_file
              set(F_OFD_SETLK, F_RDLCK, USERS) if @opened.any?
            end
            before.close
            @held.select! { |number, _| set(F_OFD_SETLK, F_WRLCK, NODES + number) }
          rescue SystemCallError => error
            raise UnavailableError, "#{@path} cannot be used now, and nothing was done: #{error.message}; #{FOR_ALL}"
          end

          def open_file
            io = File.open(@path, File::RDWR | File::CREAT, 0o600)
            stat = io.stat
            io.chmod(0o600) if stat.owned? && stat.mode & 0o600 != 0o600 # this process's umask
            @identity = [stat.dev, stat.ino]
            @io = io
          ensure
            io.close unless io.nil? || io.equal?(@io)
          end

          def same_file? = Location.identity(@path) == @identity

          def take_turn
            lock(ENTRANCE)
            lock(TURN)
          ensure
            unlock(ENTRANCE)
          end

          def lock(byte)
            return if set(F_SETLK, F_WRLCK, byte)

            Timeout.timeout(LockFile.patience, Kept) { set(F_SETLKW, F_WRLCK, byte) }
          rescue Kept
            raise UnavailableError, "#{keeper} writes to the file of #{@path} for more than " \
                                    "#{Words.duration(LockFile.patience)}, and nothing was done; is it stopped?"
          end

          def keeper
            request = pack(F_WRLCK, TURN)
            @io.fcntl(F_GETLK, request)
            type, *, pid = request.unpack(LAYOUT)
            type == F_UNLCK ? "another process" : "the process #{pid}"
          end

          def unlock(byte) = set(F_SETLK, F_UNLCK, byte)

          def set(command, type, byte)
            @io.fcntl(command, pack(type, byte))
            true
          rescue Errno::EINTR
            retry
          rescue Errno::EDEADLK
            sleep(DEADLOCK_SECONDS)
            retry
          rescue Errno::EAGAIN, Errno::EACCES
            false
          end

          def pack(type, byte) = [type, 0, byte, 1, 0].pack(LAYOUT)
        end
        private_constant :LockFile
      end
    end
  end
end
