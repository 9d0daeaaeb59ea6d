# frozen_string_literal: true

module Ringspun
  module Cluster
    # The terminal at which this process was started. When it is closed, the kernel takes it from all of its session, and only
    # then sends them HUP (__tty_hangup of Linux' drivers/tty/tty_io.c): a HUP by kill(1) finds it in its place.
    #
    # @api private
    class Terminal
      # Whichever is that of the process; without one it cannot be opened: https://man7.org/linux/man-pages/man4/tty.4.html
      PATH = "/dev/tty"
      # The time in which a shell that has got a HUP passes it on to its jobs. A later one is somebody's who wants a reload of a
      # job that the shell has disowned.
      PASSED_ON_SECONDS = 5
      # What an attempt to open it says where it is closed. Others, as a lack of descriptors, say nothing of it.
      CLOSED = [Errno::ENXIO, Errno::EIO, Errno::ENODEV, Errno::ENOENT].freeze
      private_constant :PATH, :PASSED_ON_SECONDS, :CLOSED

      # @param path [String]
      def initialize(path = PATH)
        @path = path
        @had = here?
      end

      # Called now and then, to know since when it is closed.
      #
      # @param now [Float]
      def look(now)
        @closed_at = now if @had && !@closed_at && here? == false
      end

      # @return [Boolean] whether it was closed just now
      def closed?(now)
        look(now)
        !@closed_at.nil? && now - @closed_at < PASSED_ON_SECONDS
      end

      private

      # @return [Boolean, nil] nil: nobody knows
      def here?
        File.open(@path, File::RDONLY | File::NOCTTY, &:itself)
        true
      rescue *CLOSED
        false
      rescue SystemCallError
        nil
      end
    end
  end
end
