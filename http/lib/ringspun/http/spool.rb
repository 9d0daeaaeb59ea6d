# frozen_string_literal: true

require "stringio"
require "tempfile"

module Ringspun
  module HTTP
    # The body of a request that is read to its end before the program is called: in memory where it is small, else in a file
    # without a name. So a client that sends it slowly keeps no other request from being served.
    #
    # @api private
    module Spool
      # The number of bytes up to which a body is in memory.
      MEMORY_BYTES = 65_536
      # The number of bytes that are written at once.
      PIECE_BYTES = 262_144
      private_constant :PIECE_BYTES

      class << self
        # May switch strands.
        #
        # @param input [Input]
        # @return [StringIO, File] at its beginning. Whoever has the File closes it
        # @raise [RequestError] see {Input}
        # @raise [SpoolError]
        def of(input)
          bytes = input.read(MEMORY_BYTES + 1) || +"".b
          bytes.bytesize > MEMORY_BYTES ? in_file(bytes, input) : StringIO.new(bytes)
        end

        private

        def in_file(bytes, input)
          file = on_disk { nameless_file }
          while bytes
            on_disk { file.write(bytes) }
            bytes = input.read(PIECE_BYTES)
          end
          on_disk { file.rewind }
          whole = file
        ensure
          file&.close unless whole
        end

        def nameless_file
          Tempfile.create("ringspun-http-").tap do |file|
            File.unlink(file.path)
            file.binmode
            file.sync = true # or a close has bytes to write, for which there is no room either
          end
        end

        # Ruby has an ArgumentError where there is no folder for such files.
        def on_disk
          yield
        rescue Errno::EMFILE, Errno::ENFILE => error
          raise SpoolError, "the body of a request has no file (#{error.message}): an upload above 64 KB has a descriptor " \
                            "beside that of its connection; raise `ulimit -n`, or lower max_connections"
        rescue SystemCallError, ArgumentError => error
          raise SpoolError, "the body of a request finds no place on disk (#{error.message}): set TMPDIR to a folder with room " \
                            "for the uploads of all clients, and limits: { body_max: } to what one may have"
        end
      end
    end
    private_constant :Spool
  end
end
