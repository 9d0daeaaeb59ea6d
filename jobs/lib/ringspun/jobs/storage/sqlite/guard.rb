# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # Shares the bytes of a database by which connections show that they are there, so that SQLite takes none of them for the
        # last one, which would remove what is beside it.
        #
        # Whoever closes any descriptor of a file loses all locks that its process has there by others, see
        # https://man7.org/linux/man-pages/man2/F_GETLK.2const.html. So a guard stays open for the next time, as long as anybody
        # can open the file by a name, and a forked child neither uses nor closes those of its parent.
        #
        # @api private
        class Guard
          # How SQLite marks these bytes: https://www.sqlite.org/src/file/src/os.h, SHARED_FIRST and SHARED_SIZE
          SHARED = [0x40000000 + 2, 510].freeze
          private_constant :SHARED

          @all = []
          @idle = []

          # Without a lock, which a handler of a signal that forks could not take. Each is one step under the lock of the VM.
          class << self
            # @param path [String] of the database
            # @return [Guard] to be ended
            # @raise [SystemCallError]
            def of(path) = (idle_one(Location.identity(path)) || Guard.new(path).tap { |one| @all << one }).begin

            # @param file [Array(Integer, Integer)] see {Location.identity}
            # @return [Integer] how many descriptors of this process are of guards
            def count(file) = @all.count { |one| one.file == file }

            # Closes those of files that have gone.
            #
            # @return [nil]
            def sweep
              @idle.select(&:useless?).each { |one| one.close if @idle.delete(one) && @all.delete(one) }
              nil
            end

            # @api private
            def ended(guard)
              @idle << guard
              sweep
            end

            private

            def idle_one(file)
              while (one = @idle.find { |each| each.own? && each.file == file })
                return one if @idle.delete(one)
              end
            end
          end

          # @return [Array(Integer, Integer)]
          attr_reader :file

          def initialize(path)
            @io = File.open(path, File::RDONLY)
            @file = [@io.stat.dev, @io.stat.ino]
            @pid = Process.pid
          end

          # @return [Guard]
          def begin
            LockFile.share(@io, *SHARED)
            self
          rescue SystemCallError
            Guard.ended(self)
            raise
          end

          # @return [nil]
          def end
            LockFile.share(@io, *SHARED, shared: false)
          ensure
            Guard.ended(self)
          end

          # @return [Boolean] whether this process has made it
          def own? = @pid == Process.pid

          # @return [Boolean] whether its file has no name any more, and this process nothing else of it
          def useless?
            own? && @io.stat.nlink.zero? && Location.open_files.count { |one,| one == @file } <= Guard.count(@file)
          end

          # @return [nil]
          def close = @io.close
        end
        private_constant :Guard
      end
    end
  end
end
