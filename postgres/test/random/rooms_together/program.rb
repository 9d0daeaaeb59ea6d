# frozen_string_literal: true

module RoomsTogether
  # What its actors do, each a strand, one step after the other. The seed says all of it, but not who is first.
  class Program < Data.define(:seed, :actors)
    # The pause is seconds; the number says which form of the kind. The body is of those kinds that stand around others.
    Step = Data.define(:kind, :pause, :number, :body) do
      def to_s = "#{kind} #{format("%.4f", pause)} #{number}#{" [#{body.join(", ")}]" if body}"
    end

    PLAIN = %i[ask ask stream copy batch push push push_many get get_rows note_to_self offload concurrently process file queue
               mutex spins pause listen].freeze
    AROUND = %i[transaction transaction limit stock_limit scope shield terminated].freeze

    ACTORS = (2..8)
    STEPS = (1..3)
    DEPTH = 3
    # Of a limit, a pause: as long as some statements, jobs and answers take.
    PAUSE_SECONDS = 0.012

    def self.drawn(seed)
      random = Random.new(seed)
      new(seed, Array.new(random.rand(ACTORS)) { steps(random, DEPTH) })
    end

    def self.steps(random, depth)
      Array.new(random.rand(STEPS)) do
        around = depth.positive? && random.rand(3).zero?
        kind = (around ? AROUND : PLAIN).sample(random:)
        Step.new(kind, random.rand(PAUSE_SECONDS), random.rand(6), around ? steps(random, depth - 1) : nil)
      end
    end
    private_class_method :steps

    def to_s = actors.each_with_index.map { |steps, name| "actor #{name}: #{steps.join("; ")}" }.join("\n")
  end
end
