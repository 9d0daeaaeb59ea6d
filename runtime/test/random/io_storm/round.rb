# frozen_string_literal: true

module IOStorm
  # Scheduled for strands wherever they wait.
  Nudge = Class.new(StandardError)

  # Bytes that tell from which stream they are and from which place of it.
  module Pattern
    SIZE = 1 << 20
    BYTES = Random.new(7).bytes(SIZE).then { |bytes| (bytes * 2).freeze }

    # At most SIZE of them.
    def self.at(place, length) = BYTES.byteslice(place % SIZE, length)

    # Whatever encoding the bytes that came have.
    def self.at?(place, bytes) = bytes.b == at(place, bytes.bytesize)
  end

  # A descriptor, as a number or an IO, that is closed once.
  class End
    def initialize(machine, io)
      @machine = machine
      @io = io
    end

    def closed? = @closed

    # Right before an op and not earlier: a number that was closed may be another's at any time.
    def io = closed? ? raise(Ringspun::ClosedError, "closed by its round") : @io

    def close
      return if @closed

      @closed = true
      @machine.close(@io)
    end
  end

  # One random program: scenes, whose roles are played by strands, and those who disturb them.
  class Round
    LIMIT_SECONDS = 40

    CHANGES = [
      ->(string) { string.clear }, ->(string) { string.replace("other") }, ->(string) { string.prepend("more" * 3000) },
      ->(string) { string.upcase!.to_s }, ->(string) { string << "\0" }
    ].freeze

    attr_reader :machine, :complaints, :folder, :random, :seed

    def initialize(seed)
      @seed = seed
      @random = Random.new(seed)
      @complaints = []
      @victims = []
      @scopes = []
      @ends = []
      @sources = {}.compare_by_identity
    end

    def run(machine)
      @machine = machine
      before = machine.metrics
      @folder = Dir.mktmpdir("ringspun")
      thread = Thread.new { disturb_from_thread(Random.new(@seed + 1)) }
      play
    ensure
      @over = true
      thread&.join
      FileUtils.remove_entry(@folder) if @folder
      count(before) unless machine.closed?
    end

    def complain(text) = @complaints << text

    # What a descriptor's number or IO becomes a part of the round by.
    def end_of(io) = End.new(@machine, io).tap { |made| @ends << made }
    def ends_of(ios) = ios.map { |io| end_of(io) }

    def forget(*ends) = ends.each { |each| @ends.delete(each) }

    def close_all
      @ends.each do |each|
        each.close
      rescue Ringspun::Error, SystemCallError, IOError
        nil
      end
      @ends.clear
    end

    # Has strands play the role until it is done. They may be terminated, told and cancelled wherever they are: what they have
    # done so far stands in the role.
    def act(role)
      @machine.scope { |scope| play_once(scope, role) } until role.done?
    end

    # All of them at once.
    def act_all(*roles)
      @machine.scope { |scope| roles.each { |role| scope.spin { act(role) } } }
    end

    # The scope may be cancelled while the block runs.
    def cancellable(scope)
      @scopes << scope
      yield
    ensure
      @scopes.delete(scope)
    end

    # The Strings, which other strands change as soon as they run: what is sent is what stood there.
    def changing(*strings)
      strings.each { |string| @sources[string] = true }
      yield(*strings)
    ensure
      strings.each { |string| @sources.delete(string) }
    end

    private

    def play_once(scope, role)
      scope.spin { among_victims { role.run } }.join
    rescue Ringspun::TerminatedError
      Tally.add(terminated: 1)
    end

    # Only what has begun: an exception for a strand that has not is its end.
    def among_victims
      @victims << @machine.running
      yield
    ensure
      @victims.delete(@machine.running)
    end

    def play
      @machine.scope do |all|
        watch = all.spin { watch(all) }
        disturber = all.spin { disturb_from_strand(Random.new(@seed + 2)) }
        @machine.scope { |scope| scenes.each { |scene| scope.spin { scene.play } } }
        [watch, disturber].each { |strand| @machine.terminate(strand) }
      end
    ensure
      close_all
    end

    # Children take their time, so there are none in most rounds.
    def scenes
      drawn = Array.new(GCStress::WANTED ? 2 : @random.rand(20..50)) { SCENES[@random.rand(SCENES.size)] }
      drawn << Children if @random.rand(4).zero?
      drawn.map { |scene| scene.new(self) }
    end

    def watch(scope)
      @machine.sleep(LIMIT_SECONDS)
      complain("the round hangs:\n#{@machine.describe_strands}")
      scope.cancel
    end

    def count(before)
      now = @machine.metrics
      sums = { strands: %i[strands_spawned], ops: %i[ops_inline ops_started], cancels: %i[cancels] }
      Tally.add(**sums.transform_values { |names| names.sum { |name| now[name] - before[name] } })
    end

    # --- those who disturb ---

    def disturb_from_thread(random)
      until @over
        disturb(random)
        sleep(0.002 * random.rand)
      end
    end

    def disturb_from_strand(random)
      loop do
        @machine.sleep(0.002 * random.rand)
        @sources.each_key { |string| CHANGES.sample(random: random).call(string) }
        case random.rand(40)
        when 0 then GC.start
        when 1 then GC.compact
        when 2..10 then @scopes.sample(random: random)&.cancel
        else disturb(random)
        end
      end
    end

    def disturb(random)
      strand = @victims.sample(random: random) or return
      case random.rand(6)
      when 0 then @machine.terminate(strand)
      when 1, 2 then @machine.schedule(strand, :value)
      else @machine.schedule(strand, Nudge.new)
      end
    end
  end

  # A part that strands play. Its state is changed right after the op that the change is about, where nothing can come between.
  class Role
    def initialize(round)
      @round = round
      @machine = round.machine
      @random = Random.new(round.random.rand(1 << 32))
      @hasty = pick(3).zero?
      @done = false
    end

    def done? = @done

    def run
      until done?
        begin
          step
        rescue Nudge, Ringspun::TimeoutError => error
          Tally.add((error.is_a?(Nudge) ? :told : :timeouts) => 1)
        end
      end
    end

    private

    def pick(count) = @random.rand(count)
    def moment = [0, 0.000_05, 0.000_5, 0.002][pick(4)]

    # The block, which may be ended by something. One that is hasty does op after op until its turn ends.
    def disturbed(&block)
      case @hasty ? 12 : pick(12)
      when 0, 1 then @machine.timeout(moment, &block)
      when 2 then @machine.scope(deadline: moment) { block.call }
      when 3 then @machine.scope { |scope| @round.cancellable(scope, &block) }
      when 4 then @machine.scope(deadline: moment) { |scope| scope.spin(&block).join }
      when 5 then @machine.sleep(moment).then(&block)
      else block.call
      end
    end
  end

  # Several roles and what they share.
  class Scene < Role
    # A strand that does not take part in anything else but closes it in a moment, before its time.
    def closing_soon(each)
      @machine.scope do |scope|
        closer = scope.spin do
          @machine.sleep(0.005 * @random.rand)
          each.close
        end
        yield
        @machine.terminate(closer)
      end
    end
  end
end

require_relative "streams"
require_relative "messages"
require_relative "files"
require_relative "servers"
require_relative "processes"

module IOStorm
  SCENES = [
    *[Streams] * 3, DoomedStreams, DoomedStreams, Messages, Rights, Files, Appending, Server, Openings, Sleepers
  ].freeze
end
