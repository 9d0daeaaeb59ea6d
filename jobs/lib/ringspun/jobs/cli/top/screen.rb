# frozen_string_literal: true

require "io/console"

module Ringspun
  module Jobs
    class CLI
      class Top < Command
        # A terminal that is drawn on as a whole, and is as it was before when the block of {#open} ends, however it ends. Keys
        # come one by one; a change of its size, or that the program goes on after Ctrl-Z, ends a wait.
        #
        # @api private
        class Screen
          # The other screen, no cursor, no line that goes on in the next; and back:
          # https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
          ENTER = "\e[?1049h\e[?25l\e[?7l"
          LEAVE = "\e[?7h\e[?25h\e[?1049l"
          # What is drawn between these, terminals that know them show at once.
          BEGIN_FRAME = "\e[?2026h\e[H"
          END_FRAME = "\e[J\e[?2026l"
          SIZE = [24, 80].freeze

          def initialize(input, output)
            @input = input
            @output = output
          end

          def open
            @woken, @wake = IO.pipe
            before = %w[WINCH TSTP].to_h { |name| [name, trap(name) { @wake.write_nonblock(name[0], exception: false) }] }
            enter
            yield self
          ensure
            leave
            before&.each { |name, handler| trap(name, handler || "DEFAULT") }
            [@woken, @wake].each { |pipe| pipe&.close }
          end

          # @return [Array(Integer, Integer)] rows and columns
          def size
            size = @output.winsize
            size.all?(&:positive?) ? size : SIZE
          end

          # Each line overwrites the one that was there, and only what is left over is cleared: so nothing flickers.
          #
          # @param lines [Array<String>] without control characters
          def draw(lines)
            rows, columns = size
            shown = lines.first(rows).map { |line| "#{line[0, columns]}\e[K" }
            @output.write(BEGIN_FRAME, shown.join("\r\n"), END_FRAME)
            @output.flush
          end

          # @param seconds [Numeric]
          # @return [String, nil] a key
          def wait(seconds)
            ready, = IO.select([@input, @woken], nil, nil, seconds)
            return unless ready

            stop if ready.include?(@woken) && @woken.read_nonblock(100, exception: false).to_s.include?("T")
            ready.include?(@input) ? @input.read_nonblock(1, exception: false) || "q" : nil
          rescue EOFError, Errno::EIO # the terminal is gone
            "q"
          end

          private

          def enter
            @mode = @input.console_mode
            @input.raw!(intr: true)
            @output.write(ENTER)
            @output.flush
          end

          def leave
            return unless @mode

            @output.write(LEAVE)
            @output.flush
          rescue SystemCallError # the terminal is gone
            nil
          ensure
            @input.console_mode = @mode if @mode
            @mode = nil
          end

          # Ctrl-Z: the shell finds its terminal as it was.
          def stop
            leave
            Process.kill(:STOP, Process.pid)
            enter
          end
        end
      end
    end
  end
end
