# frozen_string_literal: true

module Ringspun
  class Machine
    # Copies a file's contents and permissions, inside the kernel if it can. The copy is written to a temporary file beside `to`,
    # and renamed when it is complete. If this is cancelled or fails, `to` is not changed.
    #
    # May switch strands.
    #
    # @param from [String, Pathname] a file, or a link to one
    # @param to [String, Pathname] the copy's path; a file or link that is there is replaced
    # @return [Integer] bytes
    # @raise [UsageError] when `from` is no file, when a device, a pipe or a socket is at `to`, or when one of the two is no path
    # @raise [SystemCallError]
    # @since 0.1.0
    def copy_file(from, to) = FileCopy.new(self, from, to).call

    # One {#copy_file}.
    #
    # @api private
    class FileCopy
      # The most bytes of one copy, which a cancellation does not interrupt.
      PIECE = 8 << 20
      BUFFER = 1 << 20
      # What programs open at its path, and which a file in its place would take away from them.
      SPECIAL = %i[fifo characterSpecial blockSpecial socket].freeze
      private_constant :PIECE, :BUFFER, :SPECIAL

      def initialize(machine, from, to)
        @machine = machine
        @from = from
        @to = File.path(to)
        @bytes = 0
      rescue TypeError, ArgumentError, EncodingError => error
        raise UsageError, "copy_file: expected the path of the copy (String or Pathname): #{error.message}"
      end

      def call
        state = @machine.statx(@from)
        raise UsageError, "copy_file: #{@from} is no file but a #{state[:type]}" unless state[:type] == :file

        check_place
        @source = @machine.open(@from)
        @part = File.join(File.dirname(@to), ".ringspun-#{Random.rand(36**10).to_s(36)}")
        @target = make_part
        @placed = copy(state[:mode] & 0o777)
        @bytes
      ensure
        @machine.scope(shield: true) { clean_up }
      end

      private

      def check_place
        type = @machine.statx(@to)[:type]
        raise UsageError, "copy_file: #{@to} is a #{type}, which a copy would replace; write to it" if SPECIAL.include?(type)
      rescue SystemCallError
        nil # nothing is there, or what making the copy says as well
      end

      # In a shield: if the wait were cancelled, a worker thread could still make the file later.
      def make_part
        @machine.scope(shield: true) { @machine.open(@part, File::WRONLY | File::CREAT | File::EXCL, 0o600) }
      end

      def copy(mode)
        copy_in_kernel
        copy_rest
        File.chmod(mode, @part) unless simulated?
        @machine.rename(@part, @to)
        true
      end

      def simulated? = @machine.backend.name == :sim

      def copy_in_kernel
        while (moved = @machine.__send__(:copy_range, @source, @target, PIECE))&.positive?
          @bytes += moved
        end
      end

      # Reads and writes the rest: everything, if these filesystems cannot copy, and files with a size of 0, such as those of
      # /proc.
      def copy_rest
        buffer = String.new(capacity: BUFFER)
        while (left = @machine.read(@source, buffer, BUFFER)).positive?
          @bytes += left
          buffer = buffer.byteslice(@machine.write(@target, buffer)..) until buffer.empty?
        end
      end

      def clean_up
        [@source, @target].compact.each { |descriptor| @machine.close(descriptor) }
        @machine.unlink(@part) if @target && !@placed
      end
    end
    private_constant :FileCopy
  end
end
