# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # What was stored is lost.
        class LostError < StorageError; end
        private_constant :LostError

        # Keeps all who have a database open to one `-wal` and one `-shm`. Somebody may remove them, or put others there, such as
        # of a copy: then those who have the old ones open and those who come later know nothing of each other.
        #
        # The file of locks says which files all have. Whoever finds in a turn that the names are those of others, and has those
        # that it says, has SQLite write what is in its `-wal` into the database, which is whole then. So the files that have the
        # names now are of no use to anybody, and all may begin with new ones. Whoever comes before that is refused.
        #
        # @api private
        class Pairing
          # What the file of locks says where the database is whole without what is beside it.
          WHOLE = "whole"
          # What it says, before a time in nanoseconds, where the last of all has closed it, and nothing was left beside it.
          CLOSED = "closed "
          # What the kernel writes behind a name that is no more: https://man7.org/linux/man-pages/man5/proc_pid_fd.5.html
          GONE = " (deleted)"
          private_constant :WHOLE, :CLOSED, :GONE

          # @param path [String]
          # @param lock_file [LockFile]
          def initialize(path, lock_file)
            @path = path
            @lock_file = lock_file
          end

          # @return [Boolean] whether somebody has to begin with new files, in a turn, before they are opened
          def whole? = @lock_file.record == WHOLE

          # To be called before the database is opened.
          #
          # @param app [Boolean] whether programs that we know nothing of write to it
          # @return [nil]
          # @raise [StorageError] SQLite would write into it what is not its own, or is old
          # @raise [UnavailableError] others have other files beside it
          def check(app:)
            record = @lock_file.record
            now = FileSet.of(@path) # after that
            return if record == now.text && used? # where nobody has it open, the record may be an old one

            refuse_second_name(now.main)
            others = refuse_others(now, record)
            refuse_unknown(now, record) unless app || others.any? { |open| open.nil? || open.any? { |file,| file == now.wal } }
          rescue UnavailableError
            retry unless record == @lock_file.record && now.there? # they have just begun

            raise
          end

          # @param connection [Connection] that has just been opened
          # @yield calls its block in a turn; one that only reads need not do so
          # @return [FileSet] which it has
          # @raise [UnavailableError] others have other ones, or they have been replaced meanwhile
          def join(connection)
            connection.value("PRAGMA schema_version") # SQLite opens them with the first look
            mode = connection.value("PRAGMA journal_mode")
            files = FileSet.of(@path)
            return files unless mode == "wal"
            raise replaced("while it was opened") unless files.wal? && files.open?

            yield(-> { agree(files) }) unless @lock_file.record == files.text
            @lock_file.opened(connection, files.text) if @lock_file.record == files.text
            files
          end

          # @return [Boolean] false: whoever has these files must leave them
          def current?(files) = files.wal? && files.there? && ours?(files)

          # To be called in a turn.
          #
          # @return [Boolean] whether those who come have the same files
          def same?(files)
            return false unless files.there?
            return true if @lock_file.record == files.text
            return false unless ours?(files) # it was made anew

            @lock_file.record = files.text
            true
          end

          # To be called in a turn, for a database that has the name, by who has other files beside it.
          #
          # @param connection [Connection] to be closed by {close}
          # @param files [FileSet] which it has
          # @param app [Boolean] whether connections that are not ours may have them
          # @return [Error] what to tell, when the connection is closed
          # @raise [UnavailableError] it is to stay open
          def leave(connection, files, app:)
            is_ours = ours?(files)
            return left(connection, files) unless is_ours || waits?(connection, files)
            raise unsaved unless (is_ours || alone?(files)) && save(connection)
            raise restart if app

            is_ours && others?(files) ? FileSet.unlink(@path, only: files) : begin_anew
            replaced("and what was stored is in the file")
          end

          # The same, for a database whose name is that of another one, or of none. What was stored is in the one that has gone,
          # and what was beside it would be taken for that of the new one.
          #
          # @return [Error]
          def move(connection, files)
            if ours?(files)
              raise unsaved unless save(connection)

              FileSet.unlink(@path, only: files)
              @lock_file.record = WHOLE
            end
            UnavailableError.new("#{@path} was replaced or removed, and nothing was done; what was in it is not in the new one")
          end

          # To be called at the end of a transaction, in its turn: somebody may have taken the files meanwhile.
          #
          # @return [Boolean] whether what was stored is where others find it
          def kept?(connection, files)
            files.there? ||
              (files.main == Location.identity(@path) && (ours?(files) || alone?(files)) && save(connection))
          rescue Error, SystemCallError, IOError # what was written is not undone by that
            false
          end

          # To be called before the last call of {close}: SQLite does that by itself where nobody else has the database open.
          #
          # @return [nil]
          def save_some(connection)
            connection.without_lock { connection.row("PRAGMA wal_checkpoint(PASSIVE)") }
            nil
          rescue Error # it is stored, though not in the database
            nil
          end

          # Has SQLite write all that was stored into the database.
          #
          # @return [Boolean]
          def save(connection)
            busy, pages, saved = connection.without_lock { connection.row("PRAGMA wal_checkpoint(FULL)") }
            busy.zero? && pages == saved
          end

          # Closes a connection. SQLite must not take the last one that has these files for the last of all, for it would remove
          # what has the names by now.
          #
          # @param files [FileSet, nil] which it has
          # @param keep [Boolean, nil] whether SQLite must not write into the database what is in the `-wal`
          # @return [nil]
          def close(connection, files, keep: false)
            begin
              @lock_file.closed(connection)
              guard = Guard.of(@path) if files&.wal? && files.main == Location.identity(@path) && (keep || !ours?(files))
            ensure
              connection.close
            end
            note_closed unless used? || File.exist?("#{@path}-wal")
            nil
          ensure
            guard&.end
          end

          # @return [Error] what to tell
          def overwritten
            LostError.new("somebody has written over #{@path}-wal while it was in use, as by cp, and what was stored there and " \
                          "is not in the file yet is lost; nothing is read or done: end all programs that have it open, move " \
                          "the -wal, the -shm and the -locks away, and start them again; put files back only while nobody " \
                          "has it open")
          end

          private

          def agree(files)
            record = @lock_file.record
            return if record == files.text

            refuse_others(files, record)
            @lock_file.record = files.text
          end

          # What is beside a file has the name by which that was opened.
          def refuse_second_name(main)
            return unless main && File.stat(@path).nlink > 1

            names = holders(main).values.compact.flatten(1).select { |one,| one == main }.map(&:last)
            other = names.find { |name| second_name?(name, main) }
            return unless other

            raise StorageError, "#{@path} is the same file as #{other}, by a hard link, and a process has that open; SQLite " \
                                "would lose what is written by two names: open it by one name everywhere"
          end

          # The name may be one of a container, by which this process sees another file, or none. One that was removed has a mark.
          def second_name?(name, main)
            name = name.delete_suffix(GONE) unless Location.identity(name)
            there = Location.identity(name)
            folder, file = File.split(@path.b)
            return [nil, main].include?(there) unless File.basename(name) == file

            there == main && Location.identity(File.dirname(name)) != Location.identity(folder)
          end

          # SQLite takes a `-wal` for the file's own, whatever it is, and removes one that is beside an empty file. Nobody has
          # this one open. So it is one of another file, or an old one.
          def refuse_unknown(now, record)
            return unless now.written?
            return FileSet.unlink(@path) if record == WHOLE

            before = FileSet.parse(@path, record)
            return unless before ? (before.main == now.main) ^ (before.wal == now.wal) : older?(record)

            raise StorageError, "#{@path}-wal is not the one that was beside this file: somebody has put one of both there, " \
                                "and SQLite would write into the file what is in it, old or not; if it belongs to the file, " \
                                "as in a copy of both, remove #{@path}-locks; else move it away with the -shm"
          end

          # Beside a file that nobody has touched since the last close, one is right that was written later, as by another
          # program that was killed.
          #
          # @return [Boolean] whether the `-wal` was written before that
          def older?(record)
            return false unless record.start_with?(CLOSED)

            closed = Integer(record.delete_prefix(CLOSED), 10)
            [File.stat(@path).ctime, File.stat("#{@path}-wal").mtime].all? { |time| (time.to_r * 1_000_000_000) <= closed }
          rescue Errno::ENOENT
            false
          end

          # SQLite has removed the `-wal` by right, so the next one is another one. Whoever has the turn now opens the database.
          def note_closed
            @lock_file.try_turn do
              now = FileSet.of(@path)
              next if used? || now.main.nil? || now.wal || @lock_file.record.empty? || holders(now.main).any?

              @lock_file.record = "#{CLOSED}#{Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)}"
            end
          rescue SystemCallError, IOError # the record stays, and says less
            nil
          end

          # Whoever finds new ones must know that no others have old ones.
          #
          # @return [Array<Array, nil>] what others have open who have the database open
          def refuse_others(now, record)
            others = holders(now.main)
            return others.values if record == WHOLE

            pids = removed_from(now, others)
            here = @lock_file.opened_here.any? { |text| text != now.text }
            return others.values unless here || pids.any? || (record != now.text && @lock_file.opened_elsewhere?)

            who = pids.any? ? Words.count(pids.size, "process", "processes") + " (#{pids.join(", ")})" : "a process"
            raise UnavailableError, "the -wal or the -shm of #{@path} was removed or replaced, and #{who} still has the old " \
                                    "one, with what was stored; nothing was done; try again: it lets go within some seconds, " \
                                    "or when it ends"
          end

          # The processes that have the database open, and beside it others than those that have the names. The kernel knows by
          # which names they were opened, or where these are now.
          def removed_from(now, others)
            suspects = others.transform_values { |open| open ? removed(now, open) : [] }.reject { |_, files| files.empty? }
            return [] if suspects.empty?

            again = holders(now.main) # one of them may open or close them meanwhile
            suspects.select { |pid, files| again[pid] && (removed(now, again[pid]) & files).any? }.keys
          end

          def removed(now, open)
            beside = %r{\A(.*/#{Regexp.escape(File.basename(@path).b)})-(?:wal|shm)[^/]*\z}n
            open.select do |file, name|
              ![now.wal, now.shm].include?(file) && (own = name[beside, 1]) && !of_another?(own, now.main, open)
            end
          end

          # Another database elsewhere may have the same name. Its process has that open, too.
          def of_another?(own, main, open)
            own != @path.b && open.any? { |file, name| file != main && [own, own + GONE].include?(name) }
          end

          # A file of locks that was put back may say what was true before. Nobody begins with other files while a process has
          # these, unless the kernel tells it nothing of that one.
          def alone?(files)
            holders(files.main).each_value.all? { |open| open && ([files.wal, files.shm] - open.map(&:first)).empty? }
          end

          # Whoever closes the last connection has a lock to write there, and removes what is beside it by right:
          # https://man7.org/linux/man-pages/man5/proc_locks.5.html
          #
          # @return [Hash{Integer => Array, nil}] processes that have the database open, and what else; nil: it is not known
          def holders(main)
            return {} unless main

            lines = File.readlines("/proc/locks", mode: "rb").map(&:split)
            lines = lines.select { |line| line.values_at(1, 3) == %w[POSIX READ] && line[5].end_with?(":#{main.last}") }
            all = lines.to_h { |line| [line[4].to_i, (Location.open_files(line[4]) rescue nil)] }
            all.select { |_, open| open.nil? || open.any? { |file,| file == main } }
          rescue SystemCallError
            {}
          end

          def used? = @lock_file.opened_here.any? || @lock_file.opened_elsewhere?

          # @return [Boolean] false: others have agreed on other files
          def ours?(files)
            record = @lock_file.record
            record.empty? || record == files.text || record.start_with?(CLOSED)
          end

          # Whether what was stored is to be written into the database once no process has other files. It is lost where others
          # have agreed on the files that have the names now, for these may have been written to since.
          def waits?(connection, files)
            unsaved_pages(connection).positive? && (alone?(files) || @lock_file.record != FileSet.of(@path).text)
          end

          # A file of locks that was put back names old files: the process that still has these would take them for the current
          # ones. Another process may have others, with what was stored later.
          #
          # @return [Boolean] whether a process has other files beside the database
          def others?(files) = holders(files.main).each_value.any? { |open| open && removed(files, open).any? }

          def begin_anew
            FileSet.unlink(@path)
            @lock_file.record = WHOLE
          end

          # Somebody else has found it before, and has saved what was there.
          def left(connection, files)
            pages = unsaved_pages(connection)
            if pages.zero?
              begin_anew if FileSet.of(@path).wal == files.wal && alone?(files)
              return replaced("and what was stored is in the file")
            end

            LostError.new("the -wal or the -shm of #{@path} was replaced, and another process has begun with new ones: " \
                          "#{pages} pages that were stored before are lost; nothing was done now")
          end

          def unsaved_pages(connection)
            _, pages, saved = connection.row("PRAGMA wal_checkpoint(NOOP)")
            pages - saved
          end

          def unsaved
            UnavailableError.new("the -wal or the -shm of #{@path} was removed or replaced, and what was stored cannot be " \
                                 "saved now, for somebody reads it; nothing was done")
          end

          def restart
            UnavailableError.new("the -wal or the -shm of #{@path} was removed or replaced while programs have it open, and " \
                                 "nothing was done; end all of them, and start them again: until then what is stored is not in " \
                                 "the file")
          end

          def replaced(how)
            UnavailableError.new("the -wal or the -shm of #{@path} was removed or replaced, #{how}; nothing was done, and the " \
                                 "next call opens it anew")
          end
        end
        private_constant :Pairing
      end
    end
  end
end
