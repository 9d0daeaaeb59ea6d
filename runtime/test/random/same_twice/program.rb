# frozen_string_literal: true

class SameTwice
  # One thing that an actor does, with those that it does within.
  Step = Data.define(:kind, :options, :body) do
    def [](name) = options[name]
    def thing = options[:thing]
    def way = options[:way]
    def label = [kind, *options.values_at(:thing, :crew, :by).compact].join(" ")

    def to_s
      given = options.compact.map { |name, value| "#{name}: #{value.is_a?(Array) ? value.join(",") : value}" }
      ["#{kind}(#{given.join(", ").gsub("SameTwice::", "")})", *body.map { |step| step.to_s.gsub(/^/, "  ") }].join("\n")
    end
  end

  # Draws a program from a seed: a list of [name of an actor, step]. Any of the steps may be left out.
  #
  # It cannot get stuck by itself. Locks that actors share are numbered, and an actor that has one takes only those with higher
  # numbers. A wait, also one within locks, is ended by an actor that takes no shared lock.
  class Drawing
    ACTORS = 1..4
    STEPS = 1..3
    DEPTH_MAX = 3
    LOCKS = 3
    # One of this many waits is for a process.
    CHILD_EVERY = 50
    READY = %i[write read queue lock monitor signal select timeout close].freeze
    # How often each is drawn.
    KINDS = { wait: 6, limited: 4, shut: 3, cut: 9, crew: 7 }.freeze
    SCOPES = { locked: 4, in_time: 3, rescued: 3, caught: 1, local: 1, enumerator: 1, fail: 1 }.freeze

    def initialize(seed) = @random = Random.new(seed)

    def steps = Array.new(rand(ACTORS)) { |i| Array.new(rand(STEPS)) { [i, step(0, 0)] } }.flatten(1).shuffle(random: @random)

    private

    def rand(...) = @random.rand(...)
    def one_of(*list) = list[rand(list.size)]
    def often(weights) = weights.flat_map { |name, weight| [name] * weight }.then { |names| one_of(*names) }

    # @param locks [Integer] the first lock that it may take
    def step(depth, locks)
      scopes = depth < DEPTH_MAX ? SCOPES : {}
      kind = often(KINDS.merge(scopes))
      kind = :rescued if kind == :locked && locks >= LOCKS
      __send__(:"draw_#{kind}", depth, locks)
    end

    def leaf(kind, **options) = Step.new(kind:, options:, body: [])
    def body(depth, locks) = Array.new(rand(STEPS)) { step(depth + 1, locks) }
    def scope(kind, depth, locks, **options) = Step.new(kind:, options:, body: body(depth, locks))

    def thing(verb) = one_of(*THINGS.select { |each| each.method_defined?(verb) })
    def place = one_of(:strand, :strand, :thread)
    def error = one_of([], [], [Cut], [Cut, "late"])

    def draw_wait(*)
      of = rand(CHILD_EVERY).zero? ? one_of(*CHILDREN) : thing(:give)
      leaf(:wait, thing: of, way: rand(60), before: of != Space && rand(3).zero?, pauses: rand(4), giver: place)
    end

    def draw_limited(*) = leaf(:limited, thing: thing(:limited), way: rand(60))

    def draw_shut(*)
      leaf(:shut, thing: thing(:shut), way: rand(60), before: rand(3).zero?, pauses: rand(4), giver: place)
    end

    def draw_cut(_depth, locks)
      inner = Array.new(rand(0..3)) { one_of(:own_lock, :in_time, :rescued, :ensured, locks + rand(3)) }
      numbers = inner.grep(Integer).select { |lock| lock < LOCKS }.uniq.sort
      scopes = inner.filter_map { |each| each.is_a?(Integer) ? numbers.shift : each }
      by = one_of(:limit, :limit, :kill, :raise)
      leaf(:cut, thing: one_of(*THINGS), way: rand(60), by:, error: by == :raise ? [Cut] : error, by_fiber: rand(3).zero?,
                 held: rand(2).zero?, giver: place, scopes:, ready: Array.new(rand(1..12)) { one_of(*READY) })
    end

    def draw_crew(*)
      leaf(:crew, crew: one_of(*Crews::CREWS), places: Array.new(3) { place }, some: rand(1..3), others: rand(1..3),
                  items: rand(1..6), size: one_of(nil, 1, 3), pauses: rand(3),
                  put: one_of(:plain, :tiny, :long), take: one_of(:plain, :tiny, :zero, :long, :in_time))
    end

    def draw_locked(depth, locks)
      lock = rand(locks...LOCKS)
      scope(:locked, depth, lock + 1, lock:)
    end

    def draw_in_time(depth, locks) = scope(:in_time, depth, locks, limit: one_of(LONG, LONG, nil, 0), error: error)

    def draw_rescued(depth, locks)
      scope(:rescued, depth, locks, fails: rand(2).zero?, afterwards: rand(2).zero? ? [step(DEPTH_MAX, locks)] : [])
    end

    def draw_caught(depth, locks) = scope(:caught, depth, locks, fails: rand(2).zero?)
    def draw_local(depth, locks) = scope(:local, depth, locks, value: rand(1000))
    def draw_enumerator(depth, locks) = scope(:enumerator, depth, locks)
    def draw_fail(*) = leaf(:fail, message: "no. #{rand(100)}")
  end
end
