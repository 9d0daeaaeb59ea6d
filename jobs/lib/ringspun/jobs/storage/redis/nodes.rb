# frozen_string_literal: true

require "securerandom"

module Ringspun
  module Jobs
    class Storage
      class Redis < Storage
        # The verbs about nodes.
        #
        # @api private
        module Nodes
          # The most messages that are read in one call.
          SIGNALS_MAX = 100
          # Keys that the server scans before it serves others: https://redis.io/docs/latest/commands/scan/
          SCAN_COUNT = 1000

          # (see Storage#extend)
          def extend(nodes, seconds, connection: nil)
            return [] if nodes.empty?

            arguments = nodes.flat_map { |node| [node, @leased.key?(node) ? 1 : 0] }
            command = Script[:extend].command(@prefix, (seconds * 1000).ceil, SecureRandom.hex(8), *arguments)
            answers = call(connection, command, again: true).map { |answer| answer == 1 }
            nodes.each { |node| @leased[node] = true }
            answers
          end

          # (see Storage#recover)
          def recover(limit, forget: FORGET_SECONDS, hold: HOLD_SECONDS, connection: nil)
            command = Script[:recover].command(@prefix, limit, QUARANTINE, (forget * 1000).ceil, @history, hold)
            call(connection, command).each_slice(4).map { |node, queue, entry, to| Recovered.new(node, queue, entry, to.to_sym) }
          end

          # (see Storage#losses)
          def losses(node, connection: nil) = call(connection, ["GET", key("ringspun:losses:#{node}")], again: true).to_i

          # (see Storage#recover_exq)
          def recover_exq(limit, silent: SHOWN_SECONDS, connection: nil)
            lists = keys("#{backups.gsub(/[\\*?\[\]^-]/) { |each| "\\#{each}" }}*", connection)
            lists.each_with_object([]) do |list, moved|
              node, queue = list.delete_prefix(backups).split("::", 2)
              next if queue.nil? || moved.size >= limit

              entries = call(connection, Script[:exq].command(@prefix, node, queue, limit - moved.size, silent, @history))
              moved.concat(entries.map { |entry| Recovered.new(node, queue, entry, :queue) })
            end
          end

          # (see Storage#leave)
          def leave(node, connection: nil)
            end_waits(node, connection)
            call(connection, Script[:leave].command(@prefix, node, QUARANTINE, @history), again: true)
            @leased.delete(node)
            nil
          end

          # (see Storage#announce)
          def announce(node, info, work, connection: nil)
            fields = { "info" => JSON.generate(info.merge("identity" => node)), "concurrency" => info["concurrency"],
                       "busy" => work.size, "quiet" => info["quiet"] || false, "rss" => info["rss"] || 0,
                       "rtt_us" => info["rtt_us"] || 0 }
            slots = work.flat_map { |slot, *of_job| [slot.to_s, shown_job(node, slot, *of_job)] }
            arguments = [fields.size, *fields.flat_map { |name, value| [name, value.to_s] }, *slots]
            call(connection, Script[:announce].command(@prefix, node, *arguments), again: true)
            nil
          end

          # (see Storage#measure)
          def measure(measures, connection: nil)
            return if measures.empty?

            arguments = measures.flat_map { |each| measure_of(each) }
            call(connection, Script[:measure].command(@prefix, CLASSES_MAX, OTHERS, *arguments))
            nil
          end

          # (see Storage#measured)
          def measured(connection: nil)
            use(connection) do |one|
              names = repeat(one, [["SMEMBERS", key("ringspun:measured")]]).first.sort
              totals = names.empty? ? [] : repeat(one, names.map { |name| ["HGETALL", key("ringspun:measured:#{name}")] })
              names.zip(totals).map { |name, fields| totals_of(name, fields.transform_values(&:to_i)) }
            end
          end

          # (see Storage#measured_minutes)
          def measured_minutes(class_name, count = MINUTES_MAX, connection: nil)
            use(connection) do |one|
              last = repeat(one, [["TIME"]]).first.first.to_i / 60
              minutes = (last - [count, MINUTES_MAX].min + 1..last).to_a
              return [] if minutes.empty?

              answers = repeat(one, minutes.flat_map { |minute| minute_commands(minute, class_name) })
              minutes.zip(answers.each_slice(2)).filter_map do |minute, (numbers, counts)|
                next if numbers.none?

                histogram = counts.each_with_index.reject { |number, _| number.zero? }.to_h(&:reverse)
                Measure.new(minute, class_name, *numbers.map(&:to_i), histogram)
              end
            end
          end

          # (see Storage#retract)
          def retract(node, connection: nil)
            gone = homes.map { |home| "#{home}#{node}" } + [key("#{node}:work"), key("#{node}:workers")]
            use(connection) { |one| repeat(one, [*homes.map { |home| ["SREM", "#{home}processes", node] }, ["UNLINK", *gone]]) }
            nil
          end

          # (see Storage#signal)
          def signal(node, message, connection: nil)
            list = key("#{node}-signals")
            use(connection) { |one| all(one.exchange([["LPUSH", list, message], ["EXPIRE", list, SHOWN_SECONDS]])) }
            nil
          end

          # (see Storage#signals)
          def signals(node, connection: nil)
            commands = homes.map { |home| ["RPOP", "#{home}#{node}-signals", SIGNALS_MAX] }
            use(connection) { |one| all(one.exchange(commands)) }.compact.flatten
          end

          # (see Storage#nodes)
          def nodes(connection: nil)
            use(connection) do |one|
              names = repeat(one, [["SMEMBERS", key("processes")]]).first.sort
              fields = names.empty? ? [] : repeat(one, names.map { |name| ["HGETALL", key(name)] })
              names.zip(fields).filter_map { |name, each| shown(name, each) }
            end
          end

          # (see Storage#work)
          def work(nodes, connection: nil)
            return [] if nodes.empty?

            hashes = use(connection) { |one| repeat(one, nodes.map { |node| ["HGETALL", key("#{node}:work")] }) }
            nodes.zip(hashes).map do |node, slots|
              slots.filter_map { |slot, text| running(node, slot, text) }.sort_by { |one| [one.began_at, one.slot] }
            end
          end

          private

          def running(node, slot, text)
            job = JSON.parse(text)
            entry = job["payload"]
            Running.new(node, slot, job["queue"].to_s, entry, job["run_at"].to_f) if entry.is_a?(String)
          rescue JSON::ParserError, TypeError, NoMethodError
            nil
          end

          # Each key once, although SCAN may return a key several times.
          def keys(pattern, connection)
            found = []
            cursor = "0"
            loop do
              cursor, some = call(connection, ["SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT], again: true)
              found |= some
              return found if cursor == "0"
            end
          end

          # Without a namespace Exq puts a colon in front of some keys, see nodes_key and node_info_key in
          # https://github.com/akira/exq/blob/master/lib/exq/redis/job_stat.ex
          def homes = @prefix.empty? ? ["", ":"] : [@prefix]

          # The server may not know yet that a client of this node is gone. If its wait got a job after the node has left, nobody
          # would look for that job.
          def end_waits(node, connection)
            rouse(node, connection: connection)
          rescue StorageError # the ACL refuses it; then the worker has waited until all waits had their answers
            nil
          end

          # The fields of Sidekiq (queue, payload, run_at) and those of Exq (pid, host, and the same three):
          # https://github.com/akira/exq/blob/master/lib/exq/support/process.ex
          def shown_job(node, slot, queue, entry, began)
            JSON.generate("queue" => queue, "payload" => entry, "run_at" => began.to_f, "pid" => slot.to_s, "host" => node)
          end

          # The names of the keys: of the minute, and of the histogram. Times are in UTC.
          # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/metrics/query.rb
          def keys_of(minute, class_name)
            time = Time.at(minute * 60).utc
            [time.strftime("j|%y%m%d|%-H:%M"), "h|#{class_name}-#{time.strftime("%-d-%-H:%-M")}"]
          end

          # With that of its ten minutes.
          def measure_of(measure)
            minute, histogram = keys_of(measure.minute, measure.class_name)
            counts = measure.histogram.to_a.flatten
            [minute, minute[..-2], histogram, measure.class_name, measure.processed, measure.failed, measure.milliseconds,
             counts.size, *counts]
          end

          def minute_commands(minute, class_name)
            hash, histogram = keys_of(minute, class_name)
            [["HMGET", key(hash), *%w[p f ms].map { |field| "#{class_name}|#{field}" }],
             ["BITFIELD_RO", key(histogram), *(0..LIMITS_MS.size).flat_map { |index| ["GET", "u16", "##{index}"] }]]
          end

          def totals_of(name, fields)
            histogram = fields.except("p", "f", "ms").transform_keys(&:to_i)
            Measure.new(nil, name, *fields.values_at("p", "f", "ms").map(&:to_i), histogram)
          end

          def shown(name, fields)
            return unless fields["info"]

            numbers = %w[concurrency busy rss rtt_us].to_h { |field| [field, fields[field].to_i] }
            beat = fields["beat"].to_f
            JSON.parse(fields["info"]).merge(numbers, "identity" => name, "quiet" => fields["quiet"] == "true", "beat" => beat)
          rescue JSON::ParserError
            nil
          end
        end
        private_constant :Nodes
      end
    end
  end
end
