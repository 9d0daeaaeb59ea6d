# frozen_string_literal: true

require_relative "worker"

module Ringspun
  module Cluster
    # The only worker of a cluster without workers: this process, which has no parent to look after it. It drains at the first
    # signal to end, and at the second one cancels what is left. What that cuts is counted before: for the drain it has ended.
    #
    # @api private
    class Alone < Worker
      SIGNALS = %w[HUP INT TERM].freeze

      def initialize(settings, sockets)
        super(0, 0, settings, sockets, [nil, nil])
      end

      # @raise [ClusterError] it was told twice to end
      # @raise [Exception] what the block raises
      def run(&block)
        @machine = Machine.current
        @change = Condition.new
        @run = Run.new(@machine, signals: false)
        with_signals do
          log_start
          serve_until_end(&block)
        end
        @settings.log.info(:ended, clean: !(@killed || @cut))
        raise ClusterError, "not a clean end: a second signal has cut what was left" if @killed
        raise ClusterError, "not a clean end: what was left after drain: was cut" if @cut
      end

      private

      def log_start
        addresses = @sockets.addresses.map { |name, address| [name, address.inspect_sockaddr].compact.join(":") }
        @settings.log.info(:starting, pid: Process.pid, workers: 0, listen: addresses.join(","))
      end

      def serve_until_end(&block)
        @machine.scope do |services|
          services.spin { drain_when_asked(@drain_asked) {} }
          live(&block)
        ensure
          services.cancel
        end
      end

      # The first one writes a byte, for a handler could not log.
      def with_signals
        @drain_asked, writer = IO.pipe
        asked = 0
        before = SIGNALS.to_h do |name|
          [name, handle(name) { (asked += 1) == 1 ? writer.write_nonblock("t", exception: false) : cut }]
        end
        trap("HUP", "IGNORE") if before["HUP"] == "IGNORE" # as nohup(1) wants it
        yield
      ensure
        before&.each { |name, handler| trap(name, handler || "SYSTEM_DEFAULT") } # nil: it was not set by Ruby
        [@drain_asked, writer].each(&:close)
      end

      def cut
        @killed ||= { connections_cut: @servers.sum(&:busy), block_cut: !@block_ended }
        @run.cancel
      end

      def drained(**cut) = super(**@killed || cut)

      def report(_byte) = nil
    end
  end
end
