# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # The entries of schedules.
      #
      # @api private
      class Schedule < Command
        command "cron [list|pause|resume|run NAME...]",
                "lists jobs that come by a schedule, pauses them, has them go on, runs them now", :json

        # How each is told to whoever has asked, and what is said of one that was so already.
        PAUSES = { "pause" => [true, "is paused", "was paused already"], "resume" => [false, "goes on", "was not paused"] }.freeze

        def call(names)
          act, *names = names
          case act
          when nil, "list" then list(names)
          when "pause", "resume" then pause(named(names), *PAUSES.fetch(act))
          when "run" then run(named(names))
          else refuse("there is no #{act}; there are list, pause, resume and run")
          end
        end

        private

        def named(names) = names.empty? || names.include?("") ? refuse("it needs the names of entries") : names

        def list(names)
          rows = Cron::Overview.of(@storage)
          unknown = names - rows.map { |row| row.cron.name }
          return missing(unknown.first) if unknown.any?

          rows.select! { |row| names.include?(row.cron.name) } if names.any?
          return rows.each { |row| tell(facts(row)) }.then { SUCCESS } if json?

          table(%w[entry schedule zone job next last] + [nil], rows.map { |row| cells(row) })
          rows.each { |row| runs(row.cron) } if names.any?
          SUCCESS
        end

        def missing(name)
          say "there is no cron entry #{name}"
          FAILURE
        end

        def facts(row)
          entry = row.entry
          { "name" => row.cron.name, "schedule" => entry&.schedule, "zone" => entry&.times("UTC")&.zone,
            "class" => entry&.class_name, "args" => entry&.arguments, "catch_up" => entry&.catch_up,
            "description" => entry&.description, "source" => row.cron.source, "paused" => row.cron.paused, "next" => row.next,
            "state" => row.state, "runs" => row.cron.runs.map { |run| run.to_h.transform_keys(&:name) } }
        end

        def cells(row)
          entry = row.entry
          [row.cron.name, entry ? entry.schedule : row.cron.schedule, entry&.times("UTC")&.zone, entry&.class_name,
           (shown(row.next) unless row.cron.paused), shown(row.cron.runs.first&.at), row.state]
        end

        # In the form of ISO 8601, without a zone of this host's.
        def shown(time) = time && Time.at(time).utc.strftime("%FT%TZ")

        def runs(cron)
          rows = cron.runs.map { |run| [run.tick ? shown(run.tick) : "by hand", shown(run.at), run.jid || "no job"] }
          say "last runs of #{cron.name}:"
          table(%w[tick enqueued jid], rows)
        end

        def pause(names, paused, done, already)
          names.map { |name|
            changed = @storage.cron_pause(name, paused)
            next missing(name) if changed.nil?

            say "#{name} #{changed ? done : already}"
            SUCCESS
          }.max
        end

        def run(names)
          crons = @storage.crons.to_h { |cron| [cron.name, cron] }
          names.map { |name|
            cron = crons[name] or next missing(name)
            jid = Cron::Making.run(@storage, cron)
            say(jid ? "#{name} is enqueued as #{jid}" : "#{name} is not enqueued: another job holds its lock, or a middleware")
            jid ? SUCCESS : FAILURE
          }.max
        rescue InvalidJobError => error
          refuse(error.message)
        end
      end
      private_constant :Schedule
    end
  end
end
