# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # Which files a connection has open: the database, and the `-wal` and `-shm` beside it. Two connections that have others
        # than each other lose what either of them writes, without an error of SQLite's:
        # https://www.sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use
        #
        # @api private
        class FileSet
          PARTS = ["", "-wal", "-shm"].freeze
          # The time at which a folder has changed is one of a tick of the clock, in which it may change again.
          TICK_SECONDS = 1
          private_constant :PARTS, :TICK_SECONDS

          # @param path [String] of the database
          # @return [FileSet] those that have the names now
          def self.of(path) = new(path, PARTS.map { |part| Location.identity("#{path}#{part}") })

          # @param text [String]
          # @return [FileSet, nil] nil: it is none
          def self.parse(path, text)
            numbers = text.split.map { |number| Integer(number, 10, exception: false) }
            new(path, numbers.each_slice(2).to_a) if numbers.size == 2 * PARTS.size && numbers.all?
          end

          # @return [Array(Integer, Integer), nil] each; nil: there is none
          attr_reader :main, :wal, :shm

          def initialize(path, identities)
            @names = PARTS.map { |part| "#{path}#{part}".freeze }
            @folder = File.dirname(path)
            @all = identities
            @main, @wal, @shm = identities
          end

          # A folder says when names in it have changed last, so one look at it replaces three. Of its two times only this one is
          # never set back, as by who unpacks a copy.
          #
          # @return [Boolean] whether the names are theirs
          def there?
            folder = File.stat(@folder)
            seen = [folder.dev, folder.ino, folder.ctime]
            return true if seen == @seen
            return false unless @names.each_with_index.all? { |name, index| Location.identity(name) == @all[index] }

            @seen = seen if Time.now - folder.ctime > TICK_SECONDS
            true
          rescue Errno::ENOENT
            false
          end

          # @return [Boolean] false: it is new, or has a journal
          def wal? = !(@wal.nil? || @shm.nil?)

          # @return [Boolean] whether this process has all of them open
          def open?
            open = Location.open_files.map(&:first)
            (@all - open).empty?
          end

          # @return [Boolean] whether there is something in the database, and in its `-wal`
          def written? = @names.first(2).all? { |name| File.size?(name) }

          # @return [String] by which others know it
          def text = @text ||= @all.flatten.join(" ").freeze

          # Takes the names of what is beside the database.
          #
          # @param only [FileSet, nil] only where they are its files
          # @return [nil]
          def self.unlink(path, only: nil)
            now = of(path)
            File.unlink("#{path}-wal") if now.wal && (only.nil? || only.wal == now.wal)
            File.unlink("#{path}-shm") if now.shm && (only.nil? || only.shm == now.shm)
          rescue Errno::ENOENT
            nil
          end
        end
        private_constant :FileSet
      end
    end
  end
end
