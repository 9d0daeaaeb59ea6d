# frozen_string_literal: true

require "digest/sha1"

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # A Lua script, which the server runs atomically. It is sent by its digest, and as a whole to a server that does not know
        # it yet: https://redis.io/docs/latest/develop/programmability/eval-intro/
        #
        # A first line "-- with: a b" puts shared/a.lua and shared/b.lua in front of it. Lines that begin with a comment are not
        # sent.
        #
        # @api private
        class Script
          FOLDER = File.join(__dir__, "scripts")

          # @param name [Symbol] of the file
          def initialize(name)
            text = File.read(File.join(FOLDER, "#{name}.lua"))
            shared = text[/\A-- with: (.*)/, 1].to_s.split
            parts = [*shared.map { |part| File.read(File.join(FOLDER, "shared", "#{part}.lua")) }, text]
            @text = parts.join.gsub(/^--.*\n|^\n/, "").freeze
            @digest = Digest::SHA1.hexdigest(@text).freeze
          end

          # @param arguments [Array<String, Integer, Float>]
          # @return [Array] a command
          def command(*arguments) = ["EVALSHA", @digest, "0", *arguments]

          # @return [Array] the command with the whole script, for a server that does not know the digest
          def whole(command) = ["EVAL", @text, *command.drop(2)]

          NAMES = Dir.glob("*.lua", base: FOLDER).map { |file| File.basename(file, ".lua").to_sym }.freeze
          ALL = NAMES.to_h { |name| [name, new(name)] }.freeze
          BY_DIGEST = ALL.values.to_h { |script| [script.command[1], script] }.freeze
          private_constant :NAMES, :ALL, :BY_DIGEST

          # @param name [Symbol]
          # @return [Script]
          def self.[](name) = ALL.fetch(name)

          # @param command [Array] as {#command} makes it
          # @return [Array] as {#whole}
          def self.whole(command) = BY_DIGEST.fetch(command[1]).whole(command)
        end
        private_constant :Script
      end
    end
  end
end
