# frozen_string_literal: true

# A quarantine that makes no processes. `deeds` says how each child ends, in order; and then each ends well, after a second.
class ScriptedQuarantine
  # `deed` may be a Proc, which says by the names of the jobs. An Array has the names of those that are cut short.
  class Group
    Ending = Ringspun::Jobs::Quarantine::Group::Ending

    def initialize(members, deed, settled, &perform)
      @members = members
      @deed = deed
      @settled = settled
      @perform = perform
      @strands = {}.compare_by_identity
    end

    def run(&)
      Ringspun::Machine.current.sleep(1)
      deed = @deed.respond_to?(:call) ? @deed.call(@members.map { |member| member.run.jid }) : @deed
      case deed
      when Exception then raise deed
      when :die then Ending.new("SIGKILL", false, false)
      when :told then Ending.new("SIGTERM", true, false)
      when Array
        deed.each { |jid| yield find(jid), Ringspun::Jobs::Quarantine::Group::HELD }
        perform(@members.reject { |member| deed.include?(member.run.jid) }, &)
      when Hash then end_early(deed, &)
      else perform(@members, &)
      end
    end

    def cancel(member, why)
      member.ask(why)
      Ringspun::Machine.current.terminate(@strands[member]) if @strands[member]
    end

    def quiet = nil
    def settled? = @told == true

    def break_up
      @broken_up = true
      @strands.each_value { |strand| Ringspun::Machine.current.terminate(strand) }
    end

    private

    # When those of `ended` have, or when the one that is `cut` was cut short; or for the sake of the one that is `held`.
    def end_early(deed, &)
      if deed[:cut]
        yield find(deed[:cut]), Ringspun::Jobs::Quarantine::Group::HELD
        return Ending.new("SIGKILL", false, false)
      end
      return Ending.new("SIGKILL", false, true, find(deed[:held])) unless deed[:ended]

      perform(deed[:ended].map { |jid| find(jid) }, &)
      Ending.new("SIGKILL", false, false)
    end

    def find(jid) = @members.find { |member| member.run.jid == jid }

    def perform(members)
      machine = Ringspun::Machine.current
      @told = true if @settled
      @settled&.call
      members.each do |member|
        @strands[member] = machine.spin do
          value = Marshal.load(Marshal.dump(@perform.call(member)))
          yield member, value unless @broken_up
        end
      end
      @strands.each_value(&:join)
      Ending.new("exit 0", false, false)
    rescue Ringspun::TerminatedError
      Ending.new("SIGKILL", false, @broken_up == true)
    ensure
      @strands.each_value { |strand| machine.terminate(strand) }
    end
  end

  # The names of those in each child, and how many children there were at once.
  attr_reader :begun, :most

  # How many children there may be at once.
  attr_writer :places

  # Whether it says that the jobs of a child have had a turn.
  attr_writer :settles

  def initialize(*deeds, places: 16)
    @deeds = deeds
    @places = places
    @begun = []
    @most = 0
  end

  def places(used)
    @most = [@most, used].max
    @places
  end

  def places_for_young = 2

  def group(members, title:, quiet:, settled:, &) # rubocop:disable Lint/UnusedMethodArgument -- as a Quarantine's
    @begun << members.map { |member| member.run.jid }
    Group.new(members, @deeds.size == 1 && @deeds.first.respond_to?(:call) ? @deeds.first : @deeds.shift,
              (settled if @settles), &)
  end
end
