# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # The jobs that are done and kept: their entries stay where they are.
          #
          # @api private
          module DoneJobs
            # A page is found in an index, so that the entries before it are not looked up.
            ROWS = "SELECT page.job, entry, page.at, name, node, seconds, class FROM (%s LIMIT ? OFFSET ?) AS page " \
                   "CROSS JOIN done ON done.job = page.job CROSS JOIN jobs ON jobs.id = page.job " \
                   "CROSS JOIN queues ON queues.id = queue ORDER BY page.at %s, page.job %s"
            # By whether it is of one class, and whether from the end.
            PAGES = [["", false], ["", true], ["WHERE class = ?", false], ["WHERE class = ?", true]].to_h do |where, from_end|
              way = from_end ? "ASC" : "DESC"
              sql = format(ROWS, "SELECT job, at FROM done #{where} ORDER BY at #{way}, job #{way}", way, way)
              [[!where.empty?, from_end], sql.freeze]
            end.freeze
            ONE = "SELECT job, entry, at, name, node, seconds, class FROM done JOIN jobs ON jobs.id = job " \
                  "JOIN queues ON queues.id = queue WHERE job = ?"
            private_constant :ROWS, :PAGES, :ONE

            # @return [Array<Done>]
            def done(from, count, name, from_end)
              rows(PAGES.fetch([!name.nil?, from_end == true]), *(text(name) if name), count, from)
                .map { |job, *rest| Done.new(job.to_s, *rest) }
            end

            # @return [Done, nil]
            def find_done(token) = row(ONE, number_of(token))&.then { |job, *rest| Done.new(job.to_s, *rest) }

            # @return [Integer] how many it has forgotten
            def trim_some_done(seconds, most)
              jobs = rows("SELECT job FROM done WHERE at <= ? ORDER BY at, job LIMIT ?", now - seconds, most)
              jobs.each do |job,|
                run("DELETE FROM done WHERE job = ?", job)
                forget(job)
              end.size
            end

            private

            def keep_done(node, ack, job)
              run("INSERT INTO done (job, at, seconds, class, queue, node) VALUES (?, ?, ?, ?, ?, ?)", job, now, ack.ran.seconds,
                  text(ack.ran.class_name.to_s), known_queue(ack.queue), text(node))
            end
          end
          private_constant :DoneJobs
        end
      end
    end
  end
end
