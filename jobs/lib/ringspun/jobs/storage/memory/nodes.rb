# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Memory < Storage
        # The verbs about nodes.
        #
        # @api private
        module Nodes
          # When a lease ends, and the seconds for which it was extended.
          Lease = Struct.new(:ends, :lasts)
          private_constant :Lease

          # (see Storage#extend)
          def extend(nodes, seconds, connection: nil)
            synchronize do
              note_outage
              nodes.map do |node|
                kept = alive?(node) || (!@lists.key?(node) && !@leases.key?(node))
                register(node)
                @gone.delete(node)
                @leases[node] = Lease.new(lasting + seconds, seconds)
                kept
              end
            end
          end

          # (see Storage#recover)
          def recover(limit, forget: FORGET_SECONDS, hold: HOLD_SECONDS, connection: nil)
            synchronize do
              note_outage
              @hold = hold
              @lists.keys.reject { |node| alive?(node) }.each_with_object([]) do |node, moved|
                break moved if moved.size >= limit

                before = moved.size
                empty(node, moved, limit)
                next @gone.delete(node) if moved.size > before

                @gone[node] ||= lasting
                [@lists, @gone].each { |all| all.delete(node) } if lasting - @gone[node] >= forget
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
                  jid = Wire.jid(job.entry)
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
              @announced[node] = [shown, lasting + SHOWN_SECONDS, jobs.sort_by { |job| [job.began_at, job.slot] }]
            end
            nil
          end

          # (see Storage#measure)
          def measure(measures, connection: nil)
            synchronize do
              measures.each { |measure| add_to_minute(measure, add_to_totals(measure)) }
              @minutes.delete_if { |(_, minute), _| minute <= this_minute - MINUTES_MAX }
            end
            nil
          end

          # (see Storage#measured_minutes)
          def measured_minutes(class_name, count = MINUTES_MAX, connection: nil)
            synchronize do
              last = this_minute - [count, MINUTES_MAX].min
              minutes = @minutes.values.select { |one| one.class_name == class_name && one.minute > last }
              minutes.sort_by(&:minute).map { |one| one.dup.tap { |copy| copy.histogram = copy.histogram.dup } }
            end
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
                ends && ends > lasting ? jobs.map(&:dup) : []
              end
            end
          end

          # (see Storage#nodes)
          def nodes(connection: nil)
            synchronize { @announced.sort.filter_map { |_, (shown, ends)| shown.dup if ends > lasting } }
          end

          private

          def add_to_totals(measure)
            name = measure.class_name
            name = OTHERS unless @measured.key?(name) || @measured.size < CLASSES_MAX
            add(measure, @measured[name] ||= Measure.new(nil, name, 0, 0, 0, Hash.new(0)))
            name
          end

          def add_to_minute(measure, name)
            minute = measure.minute
            add(measure, @minutes[[name, minute]] ||= Measure.new(minute, name, 0, 0, 0, Hash.new(0)))
          end

          def add(measure, total)
            %i[processed failed milliseconds].each { |field| total[field] += measure[field] }
            measure.histogram.each { |index, count| total.histogram[index] += count }
          end

          def this_minute = (now / 60).to_i

          def alive?(node) = @leases.key?(node) && @leases[node].ends > lasting

          # Leases stand still while the process does, which may be stopped or on a host that is suspended. See {Storage#extend}.
          def note_outage
            time = lasting
            beaten, @beaten = @beaten, time
            lasts = beaten && @leases.each_value.filter_map { |lease| lease.lasts if lease.ends > beaten }.max or return
            outage = time - beaten
            stand_still(beaten, outage) if outage > [lasts / 2.0, OUTAGE_SECONDS].max
          end

          def stand_still(since, seconds)
            @leases.each_value { |lease| lease.ends += seconds if lease.ends > since }
            @places.each_value { |place| place.waits_until += seconds if place.waits_until > since }
            @old_runs.each_value { |run| run.ends += seconds if run.ends > since }
          end

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
            job = Wire.read(entry)
            if job.nil?
              line_up(queue, stored, front: true)
              return :queue
            end
            if queue != QUARANTINE
              @recovered[job["jid"]] += 1
              entry = Wire.with_queue(entry, queue) unless job["queue"]
            end
            keep_place(node, queue, entry, job["jid"])
            note(job["jid"], Event.new(kind: :taken_over), node)
            line_up(QUARANTINE, job_with(entry, stored))
            :quarantine
          end
        end
        private_constant :Nodes
      end
    end
  end
end
