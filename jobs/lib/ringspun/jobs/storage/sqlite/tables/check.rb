# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        class Tables
          # Whether the file is as it must be. Each look goes through whole tables.
          #
          # @api private
          module Check
            DAMAGED = "the file is damaged; go back to a copy"
            # What SQLite itself finds, the first faults of it.
            FAULTS = "PRAGMA integrity_check(20)"
            PLACES = "(SELECT job FROM ready UNION ALL SELECT job FROM flight UNION ALL SELECT job FROM sets " \
                     "UNION ALL SELECT job FROM done)"
            # How many there are, and the number of the first.
            NOWHERE = "SELECT count(*), min(id) FROM jobs WHERE id NOT IN #{PLACES}".freeze
            TWICE = "SELECT count(*), min(job) FROM (SELECT job FROM #{PLACES} GROUP BY job HAVING count(*) > 1)".freeze
            EMPTY = "SELECT count(*), min(job) FROM #{PLACES} WHERE job NOT IN (SELECT id FROM jobs)".freeze
            NO_NODE = "SELECT count(*), min(job) FROM flight WHERE node NOT IN (SELECT id FROM nodes)"
            NO_QUEUE = "SELECT count(*), min(job) FROM (SELECT job, queue FROM ready UNION ALL SELECT job, queue FROM flight " \
                       "UNION ALL SELECT job, queue FROM done) WHERE queue NOT IN (SELECT id FROM queues)"
            NUMBERS = "SELECT 1 FROM state WHERE next <= (SELECT max(id) FROM jobs) OR front >= (SELECT min(place) FROM ready)"
            QUEUES = "SELECT name, size, (SELECT count(*) FROM ready WHERE queue = queues.id) AS there FROM queues " \
                     "WHERE size <> there ORDER BY name"
            SETS_SIZES = "SELECT kind, size, (SELECT count(*) FROM sets WHERE sets.kind = set_sizes.kind) AS there " \
                         "FROM set_sizes WHERE size <> there ORDER BY kind"
            LOCKS = "WITH holders AS (SELECT CASE WHEN json_valid(entry) THEN json_extract(entry, '$.jid') END AS jid " \
                    "FROM jobs WHERE instr(entry, '\"unique_token\"') AND id NOT IN (SELECT job FROM done)) " \
                    "SELECT token, jid FROM locks WHERE ends > ? AND NOT stays " \
                    "AND jid NOT IN (SELECT jid FROM holders WHERE jid IS NOT NULL) ORDER BY token"
            private_constant :FAULTS, :PLACES, :NOWHERE, :TWICE, :EMPTY, :NO_NODE, :NO_QUEUE, :NUMBERS, :QUEUES, :SETS_SIZES,
                             :LOCKS

            # @return [Array<String>] see {Storage#check}
            def check_all
              @connection.without_lock do
                faults = rows(FAULTS).flatten - ["ok"]
                next faults.map { |fault| "#{DAMAGED}: #{fault}" } if faults.any?

                [*wrong_jobs, *wrong_numbers, *wrong_locks]
              end
            end

            # @return [nil]
            def count_anew
              run("UPDATE queues SET size = (SELECT count(*) FROM ready WHERE queue = queues.id)")
              run("UPDATE set_sizes SET size = (SELECT count(*) FROM sets WHERE sets.kind = set_sizes.kind)")
              @grown.clear # what has come earlier in this transaction is counted now
              nil
            end

            private

            def wrong_jobs
              { NOWHERE => "in no place, so that nobody will run them", TWICE => "in two places, so that they run twice",
                EMPTY => "in a place and have no entry, so that nobody can run them",
                NO_NODE => "in flight at a process that is not on the list, so that nobody takes them over",
                NO_QUEUE => "of a queue that is not on the list, so that nobody finds them" }.filter_map do |sql, what|
                count, first = row(sql)
                "jobs #{what}: #{count}, the first is number #{first} in the table jobs" if count.positive?
              end
            end

            def wrong_numbers
              wrong = value(NUMBERS) ? ["the next number of a job is one that a job has: enqueue nothing, and report it"] : []
              sizes = rows(QUEUES).map { |name, *counts| ["queue #{name}", *counts] } +
                      rows(SETS_SIZES).map { |kind, *counts| ["set #{Kinds::KINDS.key(kind)}", *counts] }
              wrong + sizes.map do |place, said, there|
                "the #{place} has #{there} #{Words.noun(there, "job")} and says #{said}; storage migrate counts anew"
              end
            end

            def wrong_locks
              rows(LOCKS, now).map do |token, jid|
                "the unique lock #{token} is held by #{jid}, which is no job; it ends by itself, or: " \
                  "Ringspun::Jobs.storage.unlock(#{token.inspect}, #{jid.inspect})"
              end
            end
          end
        end
      end
    end
  end
end
