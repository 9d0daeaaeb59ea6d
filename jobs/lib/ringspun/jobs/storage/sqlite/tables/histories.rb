# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # What has happened to jobs, and what they have returned.
          #
          # @api private
          module Histories
            # @return [Array<Event>]
            def history(jid)
              texts = value("SELECT events FROM histories WHERE jid = ? AND ends > ?", text(jid), lasting) or return []
              JSON.parse(texts).map { |at, kind, *rest| Event.new(at, kind.to_sym, *rest) }
            end

            # @return [Array<String, nil>]
            def results(jids)
              jids.map { |jid| value("SELECT text FROM results WHERE jid = ? AND ends > ?", text(jid), lasting) }
            end

            private

            def note(jid, event, node = nil)
              return unless jid && @history_seconds.positive?

              run("DELETE FROM histories WHERE jid IN (SELECT jid FROM histories WHERE ends <= ? LIMIT 10)", lasting)
              events = JSON.parse(value("SELECT events FROM histories WHERE jid = ?", text(jid)) || "[]")
              new = [event.kind, node, event.error_class, event.error_message].map { |part| part && text(part.to_s).scrub }
              run("INSERT OR REPLACE INTO histories (jid, events, ends) VALUES (?, ?, ?)", text(jid),
                  JSON.generate([*events, [now, *new]].last(EVENTS_MAX)), lasting + @history_seconds)
              @histories = true
            end

            def history?(jid)
              @histories = !value("SELECT 1 FROM histories LIMIT 1").nil? if @histories.nil?
              @histories && !value("SELECT 1 FROM histories WHERE jid = ?", text(jid)).nil?
            end

            def keep_result(ack)
              run("DELETE FROM results WHERE jid IN (SELECT jid FROM results WHERE ends <= ? LIMIT 10)", lasting)
              run("INSERT OR REPLACE INTO results (jid, text, ends) VALUES (?, ?, ?)", text(ack.jid), text(ack.result),
                  lasting + [ack.keep_seconds, RESULT_SECONDS_MAX].min)
            end
          end
          private_constant :Histories
        end
      end
    end
  end
end
