# frozen_string_literal: true

module IOStorm
  # Waits for one child, whoever reaps it.
  class Parent < Role
    def initialize(round, pid, expected, reaped)
      super(round)
      @pid, @expected, @reaped = pid, expected, reaped
    end

    private

    def step
      disturbed { reaped(@machine.waitid(@pid)) }
    end

    def reaped(status)
      @done = true
      @reaped << @pid
      @round.complain("child #{@pid} ended with #{status}") unless status.exitstatus == @expected && status.pid == @pid
    end
  end

  # Children of both kinds, and who waits for them.
  class Children < Scene
    def play
      reaped = []
      children = Array.new(1 + pick(3)) { |code| [pick(2).zero? ? small_program(code) : fork_of_this(code), code] }
      @round.act_all(*children.map { |pid, code| Parent.new(@round, pid, code, reaped) })
      @round.complain("#{reaped} were reaped of #{children}") unless reaped.sort == children.map(&:first).sort
      Tally.add(children: children.size)
    end

    private

    def small_program(code) = spawn("exit #{code}")

    # Here all other strands are forgotten, and the machine works.
    def fork_of_this(code)
      quick = pick(2).zero?
      fork do
        exit!(code) if quick
        reader, writer = @machine.pipe
        strand = @machine.spin { (+"").tap { |bytes| @machine.read(reader, bytes) } }
        @machine.sleep(0.000_1)
        @machine.write(writer, "works")
        exit!(strand.await == "works" ? code : 111)
      ensure
        exit!(112) # what was meant for the parent is not to get to its at_exit
      end
    end
  end

  # Opens FIFOs that nobody opens from the other side, and gives up.
  class Openings < Scene
    def play
      @fifo = File.join(@round.folder, "fifo-#{object_id}")
      File.mkfifo(@fifo)
      (1 + pick(2)).times { give_up }
    ensure
      # The other side, for those which have begun.
      Ringspun.shield { @machine.close(@machine.open(@fifo, File::RDWR | File::NONBLOCK)) } if @fifo
    end

    private

    def give_up
      @machine.timeout(moment) { @machine.close(@machine.open(@fifo, %w[r w][pick(2)])) }
    rescue Ringspun::TimeoutError
      nil
    end
  end

  # Who waits for time and for values.
  class Sleeper < Role
    def initialize(round)
      super
      @left = 3 + pick(10)
    end

    private

    def step
      return @done = true if (@left -= 1).negative?

      disturbed { pick(2).zero? ? @machine.sleep(moment) : @machine.park(moment) }
    end
  end

  class Sleepers < Scene
    def play = @round.act_all(*Array.new(1 + pick(10)) { Sleeper.new(@round) })
  end
end
