# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # The end of the `-wal` that a connection has, by which it shows that somebody has written over it in place, as
        # `cp` does. SQLite would go on behind what it has written, and whoever opens the file next would find nothing of that.
        #
        # What is in it SQLite knows from the `-shm`: how many pages, and a number that is with each of them in the `-wal`, see
        # https://www.sqlite.org/walformat.html#the_wal_index_header. That is read where SQLite has mapped it:
        # whoever opens and closes the `-shm` by another descriptor takes the locks along that SQLite has there.
        #
        # @api private
        class WalEnd
          MAPS = "/proc/self/maps"
          MEMORY = "/proc/self/mem"
          # What is before the first page, https://www.sqlite.org/fileformat.html#the_write_ahead_log
          HEADER_BYTES = 32
          # What is before each page, see there.
          FRAME_BYTES = 24
          # The size of a page, where 1 is 65,536, and the number of pages in the `-wal`; as the processor has them.
          SIZE_AND_PAGES = "@14SL"
          # For which two bytes have no room.
          LARGEST_PAGE = 65_536
          # The salt is two numbers of four bytes.
          SALT_BYTES = 8
          # Where it is in what is before a page, see there.
          SALT_IN_FRAME = 8
          # Where it is in the header of the `-shm`, see above.
          SALT_IN_SHM = 32
          private_constant :MAPS, :MEMORY, :HEADER_BYTES, :FRAME_BYTES, :SIZE_AND_PAGES, :LARGEST_PAGE, :SALT_BYTES,
                           :SALT_IN_FRAME, :SALT_IN_SHM

          # @param path [String] of the database
          # @param files [FileSet] which a connection of this process has, for as long as it is open
          # @return [WalEnd, nil] to be closed; nil: nobody can say, as where a process may not read its own memory
          def self.of(path, files)
            shm = ["rw-s", "00000000", files.shm.last.to_s]
            name = " #{path}-shm\n".b # a file of another disk may have the same number
            line = File.foreach(MAPS, mode: "rb").find { |each| each.split.values_at(1, 2, 4) == shm && each.end_with?(name) }
            new(path, line.to_i(16)) if line
          rescue SystemCallError
            nil
          end

          def initialize(path, address)
            @address = address
            @wal = File.open("#{path}-wal", "rb") # on which SQLite has no locks
            @memory = File.open(MEMORY, "rb")
          rescue SystemCallError
            @wal&.close
            raise
          end

          # To be called in a turn. Another program may be writing there: so it takes two looks to say no.
          #
          # @return [Boolean] whether it is what SQLite believes it to be
          def same? = 2.times.any? { look }

          # @return [nil]
          def close = [@wal, @memory].each(&:close)

          private

          def look
            shared = @memory.pread(SALT_IN_SHM + SALT_BYTES, @address)
            page, pages = shared.unpack(SIZE_AND_PAGES)
            return true if pages.zero?

            page = LARGEST_PAGE if page == 1
            last = HEADER_BYTES + ((pages - 1) * (FRAME_BYTES + page))
            @wal.pread(SALT_BYTES, last + SALT_IN_FRAME) == shared.byteslice(SALT_IN_SHM, SALT_BYTES)
          rescue EOFError # it is shorter
            false
          end
        end
        private_constant :WalEnd
      end
    end
  end
end
