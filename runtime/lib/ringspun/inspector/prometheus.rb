# frozen_string_literal: true

module Ringspun
  class Inspector
    # Metrics in the text format of Prometheus.
    #
    # @api private
    module Prometheus
      # The counters of {Machine#metrics}, which grow from the making of the machine on.
      COUNTERS = {
        strands_spawned: "Strands that were started.",
        resumes: "Turns that strands were given.",
        wakes: "Waits that were ended.",
        wakes_dropped: "Wakes that came for waits already over.",
        cancels: "Scopes and strands that were cancelled.",
        timers_fired: "Timers that fired.",
        ops_inline: "Operations that were done at once.",
        ops_started: "Operations that had to wait.",
        ops_offloaded: "Operations that worker threads did.",
        file_writes_inline: "Writes to files that were done at once.",
        bytes_spliced: "Bytes that were moved between descriptors and never came into the program.",
        polls: "Looks for what the kernel or other threads have for the machine.",
        busy_polls: "Times that the machine stayed awake to look for what was expected soon.",
        sleeps: "Times that the machine slept because no strand was ready.",
        messages: "Messages from other threads.",
        system_calls: "System calls of the backend."
      }.freeze

      # The present numbers of {Machine#metrics}, and maxima.
      GAUGES = {
        strands_live: "Strands that have not ended, the root included.",
        run_queue: "Strands that are ready to run.",
        run_queue_max: "The most strands that were ever ready at once.",
        idle_fibers: "Fibers that are kept for strands to come.",
        timers: "Timers that are set.",
        stream_buffers: "Buffers that hold bytes of streams.",
        look_ups_waiting: "Name look-ups that wait for a thread.",
        ops_in_flight: "Operations that the kernel or a worker has."
      }.freeze

      class << self
        def text(inspectors)
          machines = inspectors.map { |inspector| [labels_of(inspector.machine), inspector.metrics] }
          [*COUNTERS.map { |key, help| plain("#{key}_total", "counter", help, key, machines) },
           *GAUGES.map { |key, help| plain(key, "gauge", help, key, machines) },
           by_state(machines)].join
        end

        private

        def plain(name, type, help, key, machines)
          family(name, type, help, machines.map { |labels, metrics| [labels, metrics.fetch(key)] })
        end

        def by_state(machines)
          samples = machines.flat_map do |labels, metrics|
            metrics.fetch(:strands).map { |state, count| [{ **labels, state: state }, count] }
          end
          family("strands", "gauge", "Strands by what they do.", samples)
        end

        # All samples of a name must be together in the text, so the machines are labels of one family.
        def family(name, type, help, samples)
          lines = samples.map do |labels, value|
            "ringspun_#{name}{#{labels.map { |label, text| "#{label}=\"#{escape(text)}\"" }.join(",")}} #{value}\n"
          end
          "# HELP ringspun_#{name} #{help}\n# TYPE ringspun_#{name} #{type}\n#{lines.join}"
        end

        # The object id distinguishes machines whose threads have no name, or the same.
        def labels_of(machine)
          name = machine.__send__(:thread)&.name
          { backend: machine.backend.name || "closed", machine: machine.object_id, **(name ? { thread: name } : {}) }
        end

        def escape(text) = text.to_s.scrub.gsub(/["\\\n]/, "\"" => "\\\"", "\\" => "\\\\", "\n" => "\\n")
      end
    end
    private_constant :Prometheus
  end
end
