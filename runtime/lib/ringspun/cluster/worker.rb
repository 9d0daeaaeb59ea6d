# frozen_string_literal: true

module Ringspun
  module Cluster
    # What a worker knows of its cluster. Given to the block of {Cluster.run}.
    class Worker
      # At most so many seconds between two beats.
      BEAT_SECONDS = 5
      private_constant :BEAT_SECONDS

      # @return [Integer] from 0; that of a worker which has been replaced is its successor's
      # @since 0.1.0
      attr_reader :index

      # @return [Integer]
      # @since 0.1.0
      attr_reader :pid

      # @return [Integer] how many with this index there were before
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
        @ready = @stopping = @block_ended = false
      end

      # Accepts connections on a socket that the workers share, and runs the block for each, as {Ringspun.listen_tcp} does. Each
      # connection goes to one of the workers. The server is stopped, with the time that the cluster's `drain` leaves it, when the
      # worker is told to end.
      #
      # May switch strands.
      #
      # @param name [Object] of the socket, where `listen:` names several
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

      # @param name [Object] of the socket, where `listen:` names several
      # @return [Addrinfo] where the workers listen
      # @raise [UsageError]
      # @since 0.1.0
      def address(name = nil) = @sockets.address(name)

      # Says that this worker does its work, so that the one which it replaces may go. It says so by itself when all sockets of
      # the cluster are served, or if there are none, when the block begins.
      #
      # May switch strands.
      #
      # @return [nil]
      # @since 0.1.0
      def ready!
        return if @ready

        @ready = true
        tell(WorkerProcess::READY)
      end

      # @return [Boolean] whether it has said so
      # @since 0.1.0
      def ready? = @ready

      # For blocks that do one piece of work after the other: whether this one should be the last.
      #
      # @return [Boolean] whether the worker has been told to end
      # @since 0.1.0
      def stopping? = @stopping

      # Waits until the worker is told to end.
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

      # The worker's whole life. Its exit status.
      def work(told, &block)
        @machine = Machine.current
        @change = Condition.new
        take_signals(told)
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

      # Run once for all that the program does here; the strands that attend to the cluster outlive it.
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

      # Handlers may not wait, nor write to a log.
      def take_signals(told)
        @told, writer = IO.pipe
        handle("TERM") { writer.write_nonblock("t", exception: false) }
        %w[HUP INT].each { |name| handle(name) {} }
        handle("ABRT") { end_hung }
        writer.write_nonblock("t") if told.include?("TERM")
      end

      # A process that the block forks has these handlers too, and is no worker.
      def handle(name) = trap(name) { Process.pid == @pid ? yield : Traps.end_other(name) }

      # This is where the loop hangs, if that is in Ruby.
      def end_hung
        place = caller(2).map { |line| "\tfrom #{line}\n" }
        $stderr.write("ringspun.cluster event=hung worker=#{@index} pid=#{@pid}\n", *place, Ringspun.inspect_tree)
      ensure
        exit!(false)
      end

      # --- strands ---

      def attend_to_cluster(services)
        services.spin { drain_when_told(@told) { tell(WorkerProcess::DRAINING) } }
        services.spin { drain_when_told(@control) {} }
        return unless @settings.heartbeat

        interval = [@settings.heartbeat / 4.0, BEAT_SECONDS].min
        services.spin { @machine.periodically(interval) { tell(WorkerProcess::BEAT) } }
      end

      # When the block is told, nothing connects here any more: it may be that then one is started in this one's place. What has
      # begun here is said to have ended, although with the last connection all that the program does may be over.
      def drain_when_told(io)
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

      # A parent that is gone hears nothing.
      def tell(byte)
        @machine.write(@status.fileno, byte)
        nil
      rescue Errno::EPIPE
        nil
      end

      # Servers first, then the block; what else it has spun is cancelled.
      def drain
        @change.broadcast
        @ends = @settings.drain && (now + @settings.drain)
        cut = stop_servers
        @change.wait(timeout: left) until @block_ended
      rescue TimeoutError
        cut_block = true
      ensure
        @settings.log.info(:drained, worker: @index, pid: @pid, connections_cut: cut, block_cut: cut_block || false)
        @run.cancel
      end

      def stop_servers
        cut = 0
        @machine.scope { |scope| @servers.each { |server| scope.spin { cut += server.stop(within: left) } } }
        cut
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def left = @ends && [@ends - now, 0].max
    end
  end
end
