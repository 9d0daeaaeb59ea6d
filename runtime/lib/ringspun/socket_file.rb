# frozen_string_literal: true

module Ringspun
  # The file of a Unix socket, which stays when the socket is closed.
  #
  # @api private
  class SocketFile
    # nil where the socket has none.
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

    # Unless it is another socket's by now, or this is a process that was forked from the owner's.
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
