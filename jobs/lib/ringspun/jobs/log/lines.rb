# frozen_string_literal: true

require "json"

module Ringspun
  module Jobs
    class Log
      # The form of a line. Also the formatter of a Logger, for lines of the jobs themselves.
      #
      # @api private
      class Lines
        # Encodings of text whose own encoding is not known: most likely it is UTF-8.
        UNTOLD = [Encoding::UTF_8, Encoding::BINARY, Encoding::US_ASCII].freeze
        private_constant :UNTOLD

        # Converts what a job, an error or an entry brings. Text in different encodings could not be joined.
        #
        # @param text [String]
        # @return [String] in valid UTF-8
        def self.utf8(text)
          return text if text.encoding == Encoding::UTF_8 && text.valid_encoding?
          return text if text.ascii_only?
          return text.dup.force_encoding(Encoding::UTF_8).scrub if UNTOLD.include?(text.encoding)

          text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
        end

        # @return [Hash{Symbol => Object}] what a line says of a job
        def self.fields_of(job, seconds = nil)
          fields = { jid: job["jid"], class: job["wrapped"] || job["class"], queue: job["queue"] }
          fields[:elapsed] = seconds.round(3) if seconds
          fields
        end

        def initialize
          @second = nil
        end

        # Called by a Logger.
        def call(severity, _time, _program, message)
          text = case message
                 when String then message
                 when Exception then message.full_message(highlight: false)
                 else message.inspect
                 end
          line(severity.downcase.to_sym, text, {})
        end

        private

        # All lines of a second share the text up to the milliseconds.
        def time
          second, millisecond = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond).divmod(1000)
          unless second == @second
            @prefix = Time.at(second).utc.strftime("%Y-%m-%dT%H:%M:%S.")
            @second = second
          end
          "#{@prefix}#{THOUSANDTHS[millisecond]}Z"
        end

        THOUSANDTHS = Array.new(1000) { |number| format("%03d", number).freeze }.freeze
        private_constant :THOUSANDTHS
      end

      # 2026-11-22T20:00:00.000Z INFO pid=4711 jid=b4a577edbccf1d805744efa9 class=MailJob queue=default elapsed=0.012 done
      #
      # @api private
      class TextLines < Lines
        def self.message(text, fields) = "#{fields.map { |name, value| "#{name}=#{shown(value)} " }.join}#{text}"

        # Quoted only if a reader could not tell where the value ends.
        def self.shown(value)
          text = Lines.utf8(value.is_a?(String) ? value : value.to_s)
          text.empty? || text.match?(/[ "[:cntrl:]]/) ? text.inspect : text
        end

        # The most names of classes and queues that are kept as they are shown.
        KNOWN_MAX = 1000
        private_constant :KNOWN_MAX

        def initialize
          super
          @known = {}
        end

        def line(level, text, fields)
          line = "#{time} #{level.name.upcase} pid=#{Process.pid} "
          fields.each { |name, value| line << name.name << "=" << TextLines.shown(value) << " " }
          line << Lines.utf8(text) << "\n"
        end

        # There is one for each job, so it is built without a Hash, in one string.
        def done(job, seconds)
          second, millisecond = (seconds * 1000).round.divmod(1000)
          "#{time} INFO pid=#{Process.pid} jid=#{TextLines.shown(job["jid"])} class=#{known(job["wrapped"] || job["class"])} " \
            "queue=#{known(job["queue"])} elapsed=#{second}.#{THOUSANDTHS[millisecond]} done\n"
        end

        private

        def known(name)
          @known[name] || begin
            @known.clear if @known.size >= KNOWN_MAX
            @known[name] = TextLines.shown(name)
          end
        end
      end

      # {"time":"2026-11-22T20:00:00.000Z","level":"info","pid":4711,"jid":"b4a577edbccf1d805744efa9",...,"text":"done"}
      #
      # @api private
      class JSONLines < Lines
        def done(job, seconds) = line(:info, "done", Lines.fields_of(job, seconds))

        def line(level, text, fields)
          fields = fields.transform_values { |value| shown(value) }
          "#{JSON.generate({ time:, level:, pid: Process.pid, **fields, text: Lines.utf8(text) })}\n"
        end

        private

        def shown(value)
          case value
          when Integer, true, false, nil then value
          when Float then value.finite? ? value : value.to_s
          else Lines.utf8(value.to_s)
          end
        end
      end

      private_constant :Lines, :TextLines, :JSONLines
    end
  end
end
