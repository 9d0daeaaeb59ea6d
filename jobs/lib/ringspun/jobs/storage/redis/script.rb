# frozen_string_literal: true

require "digest/sha1"

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # What the server runs at one go. It is sent by its digest, and as a whole to a server that does not know it yet.
        #
        # @api private
        class Script
          FOLDER = File.join(__dir__, "scripts")

          # @param name [Symbol] of the file
          def initialize(name)
            @text = File.read(File.join(FOLDER, "#{name}.lua")).freeze
            @digest = Digest::SHA1.hexdigest(@text).freeze
          end

          # @param arguments [Array<String, Integer, Float>]
          # @return [Array] a command
          def command(*arguments) = ["EVALSHA", @digest, "0", *arguments]

          # @return [Array] the command again, for a server that has answered that it has no such script
          def whole(command) = ["EVAL", @text, *command.drop(2)]

          ALL = Dir.children(FOLDER).to_h { |file| [File.basename(file, ".lua").to_sym, new(File.basename(file, ".lua"))] }.freeze
          BY_DIGEST = ALL.values.to_h { |script| [script.command[1], script] }.freeze
          private_constant :BY_DIGEST

          # @param name [Symbol]
          # @return [Script]
          def self.[](name) = ALL.fetch(name)

          # @param command [Array] as {#command} makes it
          # @return [Array] as {#whole}
          def self.whole(command) = BY_DIGEST.fetch(command[1]).whole(command)
        end
      end
    end
  end
end
