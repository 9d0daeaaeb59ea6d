# frozen_string_literal: true

module Ringspun
  module Cluster
    # A worker of a cluster, in its own process. The block of {Cluster.run} gets it.
    class Worker
      # The longest time between two beats.
      BEAT_SECONDS = 5
      # The time in which a block that waits for its servers ends, when the drain has cut their connections.
      BLOCK_SECONDS = 1
      private_constant :BEAT_SECONDS, :BLOCK_SECONDS

      # @return [Integer] from 0; a worker's successor gets the same index
      # @since 0.1.0
      attr_reader :index

      # @return [Integer]
      # @since 0.1.0
      attr_reader :pid

      # @return [Integer] number of starts with this index before this one
      # @since 0.1.0
      attr_reader :restarts

      # @api private
      def initialize(index, restarts, settings, sockets, pipes)
        @index = index
        @restarts = restarts
        @settings = settings
        @sockets = sockets
        @control, @status = pipes
        @pid = Process.pid
        @servers = []
        @ready = @stopping = @block_ended = @cut = false
      end

      # Accepts connections on a socket that the workers share, and runs the block for each, as {Ringspun.listen_tcp} does. Each
      # connection goes to one of the workers. When the worker drains, the server is stopped, within the cluster's `drain`.
      #
      # May switch strands.
      #
      # @param name [Object] the socket's name in `listen:`; nil: the only socket
      # @param options those of {Server#initialize}
      # @yieldparam stream [Stream] closed after the block
      # @return [Server]
      # @raise [UsageError]
      # @since 0.1.0
      def serve(name = nil, **options, &block)
        raise UsageError, "serve needs a block" unless block

        server = Server.new(Listener.shared(Machine.current, @sockets.take(name)), **options, &block)
        @servers << server
        ready! if @sockets.all_taken?
        server.stop(within: left) if @stopping
        server
      end

      # @param name [Object] the socket's name in `listen:`; nil: the only socket
      # @return [Addrinfo] the address of the socket
      # @raise [UsageError]
      # @since 0.1.0
      def address(name = nil) = @sockets.address(name)

      # Tells the parent that this worker is ready: a worker that it replaces may drain. A worker does so by itself when it serves
      # all sockets of the cluster, or, if there are none, when the block begins.
      #
      # May switch strands.
      #
      # @return [nil]
      # @since 0.1.0
      def ready!
        return if @ready

        @ready = true
        report(WorkerProcess::READY)
      end

      # @return [Boolean] whether it has told the parent so
      # @since 0.1.0
      def ready? = @ready

      # For a block that works in a loop, which should then end.
      #
      # @return [Boolean] whether the worker has been asked to end
      # @since 0.1.0
      def stopping? = @stopping

      # Waits until the worker is asked to end.
      #
      # May switch strands.
      #
      # @return [nil]
      # @since 0.1.0
      def wait
        @change.wait until @stopping
      end

      # @return [String]
      # @since 0.1.0
      def inspect = "#<#{self.class} #{@index} pid=#{@pid} restarts=#{@restarts}#{" stopping" if @stopping}>"

      private

      # Runs the worker to its end. Returns its exit status.
      def work(signals, &block)
        @machine = Machine.current
        @change = Condition.new
        take_signals(signals)
        @run = Run.new(@machine, signals: false)
        @machine.scope do |services|
          attend_to_cluster(services)
          live(&block)
        ensure
          services.cancel
        end
        0
      rescue SystemExit => error
        error.status
      rescue Exception => error
        @settings.log.error(:failed, worker: @index, pid: @pid, error:)
        1
      end

      # Runs the program's code. The strands that speak with the parent outlive it.
      def live(&block)
        @run.call do
          @settings.after_fork&.call(self)
          ready! if @sockets.names.empty?
          block.call(self)
        ensure
          @block_ended = true
          @change.broadcast
        end
      rescue TerminatedError, Cancelled
        raise unless @stopping
      end

      # --- signals ---

      # The handler of TERM only writes a byte: in a handler Mutex#lock raises ThreadError (CRuby's thread_sync.c), so it could
      # not log.
      def take_signals(signals)
        @drain_asked, writer = IO.pipe
        handle("TERM") { writer.write_nonblock("t", exception: false) }
        %w[HUP INT].each { |name| handle(name) {} }
        handle("ABRT") { end_hung }
        writer.write_nonblock("t") if signals.include?("TERM")
      end

      # A process that the block forks inherits these handlers, and is no worker.
      def handle(name) = trap(name) { Process.pid == @pid ? yield : Traps.end_other(name) }

      # Writes where the loop hangs. CRuby runs handlers only between Ruby instructions: a loop that hangs in C writes nothing.
      def end_hung
        place = caller(2).map { |line| "\tfrom #{line}\n" }
        text = "ringspun.cluster event=hung worker=#{@index} pid=#{@pid}\n#{place.join}#{Ringspun.inspect_tree}"
        Inspector.__send__(:print_in_handler, text)
      ensure
        exit!(false)
      end

      # --- strands ---

      def attend_to_cluster(services)
        services.spin { drain_when_asked(@drain_asked) { report(WorkerProcess::DRAINING) } }
        services.spin { drain_when_asked(@control) {} }
        return unless @settings.heartbeat

        interval = [@settings.heartbeat / 4.0, BEAT_SECONDS].min
        services.spin { @machine.periodically(interval) { report(WorkerProcess::BEAT) } }
      end

      # Waits for a byte, which asks the worker to drain, or for the end of the pipe, which means that the parent has died. Stops
      # to listen before it yields: the block tells the parent, which may then start another worker. The shield lets the drain
      # write its log: when the last connection ends, the program may end too, and this strand is cancelled.
      def drain_when_asked(io)
        bytes = @machine.read(io.fileno, +"", 1)
        @settings.log.warn(:orphaned, worker: @index, pid: @pid) if bytes.zero?
        return yield if @stopping

        @stopping = true
        Ringspun.shield do
          @servers.each(&:stop_listening)
          yield
          drain
        end
      end

      # Ignores that the parent has died.
      def report(byte)
        @machine.write(@status.fileno, byte)
        nil
      rescue Errno::EPIPE
        nil
      end

      # Stops the servers, then waits for the block, then cancels all strands that are left.
      def drain
        @change.broadcast
        @ends = @settings.drain && (now + @settings.drain)
        @machine.scope { |scope| @servers.each { |server| scope.spin { server.stop(within: left) } } }
        @ends = [@ends, now + BLOCK_SECONDS].max if @ends && @servers.any?
        @change.wait(timeout: left) until @block_ended
      rescue TimeoutError
        cut_block = !@block_ended # it may have ended while this strand was about to run
      ensure
        drained(connections_cut: @servers.sum(&:cut), block_cut: cut_block || false)
        @run.cancel
      end

      def drained(connections_cut:, block_cut:)
        @settings.log.info(:drained, worker: @index, pid: @pid, connections_cut:, block_cut:)
        @cut = block_cut || connections_cut.positive?
        report(WorkerProcess::CUT) if @cut
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def left = @ends && [@ends - now, 0].max
    end
  end
end
