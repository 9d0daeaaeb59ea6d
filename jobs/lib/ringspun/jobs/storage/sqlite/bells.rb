# frozen_string_literal: true

require "socket"

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # The strands of this process that wait for jobs, and how processes tell each other of some: by datagrams, sent after the
        # commit. Each process that has waited has a socket in a folder beside the database. Whatever comes without a datagram,
        # as from another program, or from a process that was killed between, is found by {Looks} at the file's version.
        #
        # @api private
        class Bells
          # A datagram that names no queue, for there are too many.
          ANY = "*"
          # What waits for jobs that are due, which no queue can be called.
          DUE = "\0due"
          # Queues that a datagram names at most: it stays small enough that the buffer of a socket takes many, unix(7).
          NAMES_MAX = 64
          # The masks of its thread, which does what there is to do at its end wherever it is killed.
          LATER = { Object => :never }.freeze
          AT_ONCE = { Object => :immediate }.freeze
          private_constant :NAMES_MAX, :LATER, :AT_ONCE

          # One who waits.
          class Bell
            attr_reader :node, :names
            attr_accessor :ended

            def initialize(node, names)
              @node = node
              @names = names
              @channel = Channel.new(1) # its timeouts go by the machine's clock, a simulated one included
            end

            # May switch strands.
            #
            # @return [Symbol, nil] :there: somebody has said that there is something; :look: there may be; nil: it was not rung
            def wait(seconds) = @channel.pop(timeout: seconds)

            def ring(what = :look) = @channel.try_push(what)

            # Whoever waits shall look no more.
            def end_wait
              self.ended = true
              ring
            end
          end
          private_constant :Bell

          # @param folder [String]
          # @yieldreturn [Integer] a number that changes when another connection has written
          def initialize(folder, &version)
            @folder = folder
            @version = version
            @lock = Thread::Mutex.new
            @sending = Thread::Mutex.new # the thread that writes does, and whoever has committed a transaction of his own
            @bells = {}.compare_by_identity
            @others = []
          end

          # @param node [String, nil]
          # @param names [Array<String>] of queues
          # @return [Bell] to be closed; one that has ended if these have been closed
          def open(node, names)
            bell = Bell.new(node, names)
            locked do
              next if @closed

              listen unless @thread
              @bells[bell] = true
              nudge if @bells.size == 1 # or its thread would sleep without looking
            end
            bell.end_wait if @closed
            bell
          end

          # @return [nil]
          def close_bell(bell)
            locked { @bells.delete(bell) } if bell
            nil
          end

          # @param node [String]
          # @return [nil]
          def end_waits(node)
            locked { @bells.keys }.each do |bell|
              bell.end_wait if bell.node == node
            end
            nil
          end

          # Tells all processes, this one first.
          #
          # @param names [Array<String>] of queues where there may be jobs
          # @return [nil]
          def ring(names)
            ring_here(names)
            Fiber.blocking { @sending.synchronize { ring_elsewhere(names) } }
          end

          # In a forked child: the socket is the parent's.
          #
          # @return [nil]
          def abandon
            [@own, @nudging, @sender, @directory, @looks].each { |io| io&.close }
            nil
          end

          # To be called when nobody rings any more.
          #
          # @return [nil]
          def close_sender
            @sender&.close
            @directory&.close
            @sender = @directory = nil
          end

          # Ends all waits, and the thread. May switch strands.
          #
          # @return [nil]
          def close
            thread, ended = locked do
              @closed = true
              nudge if @thread
              [@thread, @bells.keys]
            end
            ended.each(&:end_wait)
            thread&.join
            nil
          end

          private

          # Without a switch of strands: the lock is held for a few instructions only.
          def locked(&) = Fiber.blocking { @lock.synchronize(&) }

          # Wakes the thread, also where the name of its socket is gone.
          def nudge = @nudging.sendmsg_nonblock("", 0, exception: false)

          def ring_here(names)
            any = names.include?(ANY)
            locked { @bells.keys }.each do |bell|
              named = bell.names.any? { |name| names.include?(name) }
              bell.ring(named ? :there : :look) if named || any
            end
          end

          # What it is told of is stored, and who asked for that must not hear of an error here. Who waits elsewhere will look.
          def ring_elsewhere(names)
            others = sockets
            return if others.empty?

            text = names.size > NAMES_MAX ? ANY : names.join("\n")
            @sender ||= Socket.new(:UNIX, :DGRAM)
            others.each { |path| send_to(path, text) }
          rescue SystemCallError, IOError # it is being closed
            nil
          end

          # A process whose socket is full, or which another user runs, will look anyway. What has a longer name is no socket.
          def send_to(path, text)
            @sender.sendmsg_nonblock(text, 0, Socket.sockaddr_un(path), exception: false)
          rescue Errno::ECONNREFUSED # its process has ended
            File.unlink(path) if File.socket?(path)
          rescue SystemCallError, ArgumentError
            nil
          end

          def sockets
            changed = File.stat(@folder).mtime
            return @others if changed == @changed && Time.now - changed > 1 # within one tick of the clock it may change twice

            @others = Dir.children(@folder).map { |name| "#{short_folder}/#{name}" } - [@path]
            @changed = changed
            @others
          rescue Errno::ENOENT
            []
          end

          # The name of a socket has 107 bytes at most, and a folder may have more:
          # https://man7.org/linux/man-pages/man7/unix.7.html
          def short_folder
            return @folder if @folder.bytesize < 60

            @directory ||= Dir.new(@folder)
            "/proc/self/fd/#{@directory.fileno}"
          end

          def listen
            make_folder
            @path = "#{short_folder}/#{Process.pid}.#{SecureRandom.hex(4)}"
            address = Socket.sockaddr_un(@path)
            @own = Socket.new(:UNIX, :DGRAM).tap { |socket| socket.bind(address) }
            @nudging = Socket.new(:UNIX, :DGRAM).tap { |socket| socket.connect(address) }
            File.chmod(0o600, @path) # whatever the umask
            @looks = Looks.new(File.dirname(@folder), @own)
            @thread = start
          rescue SystemCallError => error
            raise UnavailableError, "no socket can be made in #{@folder}: #{error.message}"
          end

          def start
            thread = Thread.handle_interrupt(LATER) do # a thread inherits the mask of its maker
              Thread.new do
                Thread.handle_interrupt(AT_ONCE) { hear }
              ensure
                hear_no_more
              end
            end
            thread.name = "ringspun sqlite bells"
            thread
          end

          # Where other code of the program has killed the thread, whoever waits looks again, and so the next one begins.
          def hear_no_more
            left = locked do
              @thread = nil
              [@own, @nudging, @looks].each(&:close)
              @bells.keys
            end
            left.each(&:end_wait)
            File.unlink(@path)
          rescue Errno::ENOENT
            nil
          end

          def make_folder
            Dir.mkdir(@folder, 0o700)
            File.chmod(0o700, @folder)
          rescue Errno::EEXIST
            nil
          end

          def hear
            version = nil
            until @closed
              waiting = locked { @bells.any? }
              @looks.wait(waiting)
              texts = receive
              ring_here(texts.flat_map { |text| text.force_encoding(Encoding::UTF_8).split("\n") }.uniq) if texts.any?
              next unless waiting && @looks.due? # whoever was named comes first

              written = @looks.take_writes
              last = version
              version = @version.call
              @looks.looked(written, version != last)
              ring_here([ANY]) unless version == last
            end
          end

          def receive
            texts = []
            while (text, = @own.recvfrom_nonblock(65_536, exception: false)) && text != :wait_readable
              texts << text unless text.empty?
            end
            texts
          end
        end
        private_constant :Bells
      end
    end
  end
end
