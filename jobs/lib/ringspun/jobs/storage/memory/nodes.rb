# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The verbs about nodes.
        #
        # @api private
        module Nodes
          # (see Storage#extend)
          def extend(nodes, seconds, connection: nil)
            synchronize do
              nodes.map do |node|
                kept = alive?(node) || (!@lists.key?(node) && !@leases.key?(node))
                register(node)
                @gone.delete(node)
                @leases[node] = now + seconds
                kept
              end
            end
          end

          # (see Storage#recover)
          def recover(limit, forget: FORGET_SECONDS, hold: HOLD_SECONDS, connection: nil)
            synchronize do
              @hold = hold
              @lists.keys.reject { |node| alive?(node) }.each_with_object([]) do |node, moved|
                break moved if moved.size >= limit

                before = moved.size
                empty(node, moved, limit)
                next @gone.delete(node) if moved.size > before

                @gone[node] ||= now
                [@lists, @gone].each { |all| all.delete(node) } if now - @gone[node] >= forget
              end
            end
          end

          # (see Storage#recover_exq)
          def recover_exq(limit, silent: SHOWN_SECONDS, connection: nil) = []

          # (see Storage#leave)
          def leave(node, connection: nil)
            synchronize do
              @lists.delete(node)&.each do |queue, jobs|
                jobs.each do |job|
                  jid = jid_of(job.entry)
                  @trials.delete(jid) if queue == QUARANTINE
                  stop_in_place(jid) if queue == QUARANTINE
                  note(jid, Event.new(kind: :returned), node)
                  line_up(queue, job, front: true)
                end
              end
              [@leases, @gone, @signals, @losses].each { |all| all.delete(node) }
              @old_runs.delete_if { |run, _| run.first == node }
            end
            nil
          end

          # (see Storage#announce)
          def announce(node, info, work, connection: nil)
            defaults = { "quiet" => false, "rss" => 0, "rtt_us" => 0 }
            synchronize do
              shown = { **defaults, **JSON.parse(JSON.generate(info)), "identity" => node, "busy" => work.size, "beat" => now }
              jobs = work.map { |slot, queue, entry, began| Running.new(node, slot.to_s, queue, entry, began.to_f) }
              @announced[node] = [shown, now + SHOWN_SECONDS, jobs.sort_by { |job| [job.began_at, job.slot] }]
            end
            nil
          end

          # (see Storage#measure)
          def measure(measures, connection: nil)
            synchronize { measures.each { |measure| add_to_totals(measure) } }
            nil
          end

          # (see Storage#measured)
          def measured(connection: nil)
            synchronize { @measured.sort.map { |_, total| total.dup.tap { |copy| copy.histogram = copy.histogram.dup } } }
          end

          # (see Storage#retract)
          def retract(node, connection: nil)
            synchronize { @announced.delete(node) }
            nil
          end

          # (see Storage#signal)
          def signal(node, message, connection: nil)
            synchronize { (@signals[node] ||= []) << message.dup }
            nil
          end

          # (see Storage#signals)
          def signals(node, connection: nil) = synchronize { @signals.delete(node) || [] }

          # (see Storage#work)
          def work(nodes, connection: nil)
            synchronize do
              nodes.map do |node|
                _, ends, jobs = @announced[node]
                ends && ends > now ? jobs.map(&:dup) : []
              end
            end
          end

          # (see Storage#nodes)
          def nodes(connection: nil)
            synchronize { @announced.sort.filter_map { |_, (shown, ends)| shown.dup if ends > now } }
          end

          private

          def add_to_totals(measure)
            name = measure.class_name
            name = OTHERS unless @measured.key?(name) || @measured.size < CLASSES_MAX
            total = @measured[name] ||= Measure.new(nil, name, 0, 0, 0, Hash.new(0))
            %i[processed failed milliseconds].each { |field| total[field] += measure[field] }
            measure.histogram.each { |index, count| total.histogram[index] += count }
          end

          def alive?(node) = (@leases[node] || 0) > now

          def empty(node, moved, limit)
            @lists[node].each do |queue, jobs|
              while moved.size < limit && (job = jobs.pop)
                @losses[node] += 1
                moved << Recovered.new(node, queue, job.entry, give_away(node, queue, job))
                ring(queue) # whose limit may allow another one now
              end
            end
          end

          def give_away(node, queue, stored)
            entry = stored.entry
            job = job_of(entry)
            if job.nil?
              line_up(queue, stored, front: true)
              return :queue
            end
            if queue != QUARANTINE
              @recovered[job["jid"]] += 1
              entry = with_queue(entry, queue) unless job["queue"]
            end
            keep_place(node, queue, entry, job["jid"])
            note(job["jid"], Event.new(kind: :taken_over), node)
            line_up(QUARANTINE, job_with(entry, stored))
            :quarantine
          end

          # A null goes, for readers take the last of two members.
          def with_queue(entry, queue)
            job = Wire.parse_to_change(entry)
            return entry.sub("{") { %({"queue":#{JSON.generate(queue)},) } unless job.key?("queue")

            Wire.dump({ "queue" => queue }.merge(job.except("queue")))
          end
        end
        private_constant :Nodes
      end
    end
  end
end
