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
            OF_CLASS = "class = ?"
            OF_QUEUE = "queue = (SELECT id FROM queues WHERE name = ?)"
            # By what all have in common, and whether they are read from the end. For a class and a queue SQLite looks at all of
            # the class.
            PAGES = [[], [OF_CLASS], [OF_QUEUE], [OF_CLASS, "+#{OF_QUEUE}"]].product([false, true]).to_h { |conditions, from_end|
              where = "WHERE #{conditions.join(" AND ")}" if conditions.any?
              way = from_end ? "ASC" : "DESC"
              sql = format(ROWS, "SELECT job, at FROM done #{where} ORDER BY at #{way}, job #{way}", way, way)
              [[conditions.include?(OF_CLASS), conditions.any? { |one| one.end_with?(OF_QUEUE) }, from_end], sql.freeze]
            }.freeze
            ONE = "SELECT job, entry, at, name, node, seconds, class FROM done JOIN jobs ON jobs.id = job " \
                  "JOIN queues ON queues.id = queue WHERE job = ?"
            private_constant :ROWS, :OF_CLASS, :OF_QUEUE, :PAGES, :ONE

            # @return [Array<Done>]
            def done(from, count, name, queue, from_end)
              sql = PAGES.fetch([!name.nil?, !queue.nil?, from_end == true])
              rows(sql, *[name, queue].compact.map { |one| text(one) }, count, from)
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
