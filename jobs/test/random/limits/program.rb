# frozen_string_literal: true

require_relative "model"

module RandomLimits
  # A random program: what processes do with jobs of one queue with a limit, and what happens to them. Each step is a name, and
  # numbers that choose; so a step makes sense wherever it stands.
  class Program
    Storage = Ringspun::Jobs::Storage
    Q = Storage::QUARANTINE
    QUEUE = "narrow"
    PROCESSES = 4
    STEPS = { push: 3, fetch: 10, suspects: 10, begin_all: 12, finish: 3, die_isolated: 2, freeze: 6, cut: 4, kill: 2, leave: 1,
              back: 3, notice: 3, recover: 10 }.freeze
    # A run that is told of without its entry, as by Worker::Processor.
    NO_TOKEN = "taken away"

    def self.steps(random, count = 20 + random.rand(100))
      names = STEPS.flat_map { |name, share| [name] * share }
      Array.new(count) { [names.sample(random: random), random.rand(1000), random.rand(1000)] }
    end

    attr_reader :faults, :model

    # @param storage [Storage] which is empty
    # @yieldparam node [String] whose lease the block ends
    def initialize(storage, limit, &lapse)
      @storage = storage
      @limit = limit
      @lapse = lapse
      @model = Model.new(limit, PROCESSES)
      @faults = []
      @number = @run_number = @killed = 0
    end

    # @return [Array<String>] what was wrong, the first first
    def run(steps)
      alive = @model.processes
      @storage.extend(alive.map(&:node), 1000)
      3.times { push(nil, 2) }
      steps.each do |name, which, how|
        send(name, @model.processes[which % PROCESSES], how)
        @faults = @model.faults.map { |fault| "after #{name}: #{fault}" }
        return @faults if @faults.any?
      end
      end_well
      @faults
    end

    private

    def push(_process, how)
      pushes = Array.new(1 + (how % 3)) do
        jid = "j#{@number += 1}"
        entry = JSON.generate("class" => "Work", "args" => [], "jid" => jid, "queue" => QUEUE)
        Storage::Push.new(queue: QUEUE, entry: entry, jid: jid)
      end
      @storage.push(pushes)
    end

    def fetch(process, how)
      return unless process.contact?

      take(process, @storage.fetch(process.node, [QUEUE], 1 + (how % 3), limits: { QUEUE => @limit }))
        .each { |run| @model.begin_run(run) }
    end

    def suspects(process, how)
      take(process, @storage.fetch(process.node, [Q], 1 + (how % 3))) if process.contact?
    end

    def take(process, fetched)
      runs = fetched.map { |one| Model::Run.new(one, JSON.parse(one.entry)["jid"], one.queue, false, false) }
      process.runs.concat(runs)
      runs
    end

    def begin_all(process, _how)
      return unless process.contact?

      runs = process.runs.select { |run| run.list == Q && !run.begun }
      begun = runs.map { |run| Storage::Begun.new(run.fetched, @run_number += 1) }
      runs.zip(@storage.begin_quarantined(process.node, begun)) do |run, answer|
        case answer
        when Storage::Trials then @model.begin_run(run)
        when nil then process.runs.delete(run)
        end
      end
    end

    # Where the process cannot say so, it says so when it can.
    def finish(process, how)
      return if process.state == :frozen || (run = process.begun[how % 7]).nil?

      process.runs.delete(run)
      process.untold << run
      tell(process, how) if process.contact?
    end

    def tell(process, how)
      process.untold.each do |run|
        token = run.old ? NO_TOKEN : run.fetched.token
        if how.even?
          @storage.ack(process.node, [Storage::Ack.new(run.list, token, run.jid)])
        else
          @storage.fail(process.node, [Storage::Failure.new(queue: run.list, token: token, jid: run.jid, to: :dead)])
        end
      end
      process.untold.clear
    end

    # Its child has ended, so it runs no more, and runs again.
    def die_isolated(process, how)
      return unless process.contact? && (run = process.begun.select { |each| each.list == Q && !each.old }[how % 3])

      process.runs.delete(run)
      failure = Storage::Failure.new(queue: Q, token: run.fetched.token, jid: run.jid, to: :queue, died: true)
      @storage.fail(process.node, [failure])
    end

    def freeze(_process, how) = lose(how, :frozen)
    def cut(_process, how) = lose(how, :cut)

    # One that has not noticed yet what it has lost does that first.
    def lose(how, state)
      process = one_of(how) { |each| each.state == :alive && each.begun.any? } or return
      process.state = state
      @lapse.call(process.node)
    end

    def one_of(how, &) = @model.processes.select(&).then { |some| some[how % some.size] if some.any? }

    def kill(process, _how)
      @killed += process.begun.size + process.untold.size
      @lapse.call(process.node)
      renew(process)
    end

    def leave(process, _how)
      return unless process.state == :alive

      @storage.leave(process.node)
      renew(process)
    end

    def renew(process) = @storage.extend([@model.replace(process).node], 1000)

    def back(_process, how) = one_of(how) { |each| !each.contact? }&.then { |process| come_back(process, how) }

    def come_back(process, how)
      @storage.extend([process.node], 1000)
      process.state = :back
      tell(process, how)
    end

    # As Worker::Losses does.
    def notice(process, how)
      return unless process.state == :back

      there = @storage.in_flight(process.node).tally
      lost = process.runs.reverse.reject { |run| there.fetch(run.fetched, 0).positive? && there[run.fetched] -= 1 }
      wrong = lost.reject(&:old)
      raise "#{wrong} are not in flight, and nobody has them" if wrong.any?

      process.runs -= lost
      process.untold.concat(lost.select(&:begun))
      tell(process, how)
      process.state = :alive
    end

    def recover(_process, _how) = @model.taken_over(@storage.recover(100, hold: 1000))

    # When all are there and nobody dies, all jobs end.
    def end_well
      @model.processes.each do |process|
        come_back(process, 0) unless process.contact?
        notice(process, 0)
      end
      recover(nil, 0)
      100.times { @model.processes.each { |process| work(process) } unless empty? || @faults.any? }
      @faults << "it does not end: #{@storage.stats}" unless empty? || @faults.any? || stuck_for_the_killed?
    end

    def work(process)
      %i[fetch suspects begin_all].each { |name| send(name, process, 0) }
      @faults.concat(@model.faults)
      finish(process, 0) while process.begun.any?
    end

    def empty? = @storage.stats.values_at(:enqueued, :in_flight).sum.zero?

    # Of runs whose processes were killed nobody hears. So many of them hold up the others, until their time is over.
    def stuck_for_the_killed? = @model.processes.all? { |process| process.begun.empty? } && @killed >= 2 * @limit
  end
end
