# frozen_string_literal: true

module Ringspun
  # The file of a Unix socket, which is not removed when the socket is closed.
  #
  # @api private
  class SocketFile
    # @return [SocketFile, nil] nil: the socket has none
    def self.of(address)
      return unless address.unix?

      path = address.unix_path
      new(path) unless path.empty? || path.start_with?("\0")
    end

    def initialize(path)
      @path = path
      @owner = Process.pid
      @identity = identity
    end

    # Removes the file, unless it belongs to another socket by now, or this is a forked child of the owner.
    def remove
      File.unlink(@path) if Process.pid == @owner && identity == @identity
    rescue SystemCallError
      nil
    end

    private

    def identity = File.lstat(@path).then { |file| [file.dev, file.ino] }
  end
  private_constant :SocketFile
end
