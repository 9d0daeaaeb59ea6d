# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # The tables of the storage: their version, and whether all is as it must be.
      #
      # @api private
      class Upkeep < Command
        command "storage version|migrate|check", "the version of a file's tables; brings them to ours; says what is wrong", :json

        WHAT = %w[version migrate check].freeze

        def call(names)
          refuse("say what: #{WHAT.join(", ")}") if names.empty?
          word = names.join(" ")
          refuse("there is no storage #{word}; there are #{WHAT.join(", ")}") unless WHAT.include?(word)

          public_send(word)
        end

        # One that this program cannot use is told, and its status is 1.
        def version
          version = @storage.version
          return none_there unless version

          usable = version.known >= version.oldest
          if json? then tell({ "version" => version.there, "known" => version.known, "oldest" => version.oldest })
          else say("version #{version.there}; this program knows #{version.known}#{advice(version, usable)}")
          end
          usable ? SUCCESS : FAILURE
        end

        def migrate
          before = @storage.version
          return none_there unless before

          @storage.migrate
          after = @storage.version.there
          return (tell({ "before" => before.there, "version" => after }) || SUCCESS) if json?

          say(after > before.there ? "from version #{before.there} to #{after}" : "version #{after}: there was nothing to do")
          SUCCESS
        end

        def check
          wrong = @storage.check
          json? ? tell({ "wrong" => wrong }) : wrong.each { |line| say(line) }
          say("nothing is wrong") unless json? || wrong.any?
          wrong.empty? ? SUCCESS : FAILURE
        end

        private

        def none_there
          json? ? tell({ "version" => nil }) : say("this storage has no tables: there is nothing to migrate")
          SUCCESS
        end

        def advice(version, usable)
          return ", and needs version #{version.oldest} to be known: run: bundle update ringspun-jobs" unless usable
          return ": the first program that writes, or storage migrate, brings it there" if version.there < version.known

          ", and can use what is later" if version.there > version.known
        end
      end
      private_constant :Upkeep
    end
  end
end
