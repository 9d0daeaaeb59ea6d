# frozen_string_literal: true

# Random trees of evaluations, on a simulated machine or a real one: they wait, fail, conclude and resume each other, and wait for
# each other. One seed is one tree, and on a simulated machine one order of all that happens in it. For CRuby and mruby.
class EvaluationTrees
  NODES_MAX = 40
  DEPTH_MAX = 4
  STEPS_MAX = 6
  TURNS_MAX = 10_000
  MICROSECONDS = 100e-6 # what a clock may be out
  AGAIN = RUBY_ENGINE == "mruby" ? "bin/bundle exec rake test:mruby_random" : "bin/test runtime/test/evaluation/tree_test.rb"

  Evaluation = Ringspun::Evaluation
  Failure = Class.new(StandardError)
  Broken = Class.new(StandardError)

  # Raises what names the seed when one of them breaks a rule that is not known to be broken.
  # @param seeds [Array<Integer>]
  # @param expected [ExpectedFailures]
  # @param real [Boolean] on a machine of its own on a real kernel, or else on a simulated one
  # @return [Integer] how many it has run
  def self.explore(seeds, expected, real: false)
    seeds.each do |seed|
      tree = new(seed, real: real)
      failure = tree.failure
      raise Broken, tree.report(failure, expected) if failure && !expected.known?(failure)
    end
    seeds.size
  end

  attr_reader :said

  # @param only [Array<String>] the steps that are not left out; nil: all
  def initialize(seed, real: false, only: nil)
    @seed = seed
    @real = real
    @only = only && only.to_h { |name| [name, true] }
    @said = []
    @step_names = []
    @nodes = []
    @broken = nil
    @resumes = 0
    @resumed = 0
  end

  # Runs the tree.
  # @return [String, nil] which rule it has broken
  def failure
    @real ? Ringspun.run { |machine| run(machine) } : Ringspun::Simulation.run(seed: @seed) { |machine| run(machine) }
    @broken
  rescue StandardError, Ringspun::Cancelled => error
    @broken || "#{error.class}: #{error.message}"
  end

  # @return [String] how to run a tree once more that has failed, and what is left of it without the steps that do not matter
  def report(failure, expected)
    text = "seed #{@seed}: #{failure}\nonce more: RINGSPUN_SEED=#{@seed} #{AGAIN}"
    return "#{text}\n  #{@said.join("\n  ")}" if @real # next time the kernel may do something else

    steps = Shrink.smallest(@step_names, tries: 200) do |some|
      again = self.class.new(@seed, only: some).failure
      again && !expected.known?(again)
    end
    smallest = self.class.new(@seed, only: steps)
    "#{text}\n#{steps.size} of its #{@step_names.size} steps break a rule: #{smallest.failure}\n  #{smallest.said.join("\n  ")}"
  end

  private

  def run(machine)
    @machine = machine
    strands_before = strands
    root = Node.new(@seed)
    root.draw(0)
    (1..root.between(2, 4)).each { |index| rescue_all { take(root, index) { grow(root, index) } } }
    await_all
    Ringspun.wait(0.001) # a strand that was to begin one which never does is still to find that out
    @nodes.each { |node| check(node) }
    check_resumes
    left = [strands - strands_before, *@machine.metrics.values_at(:ops_in_flight, :timers)]
    left = left.take(1) if @real # the kernel may be slow to give back the last
    broken("left: #{left.join(", ")} strands, ops and timers") unless left.all?(&:zero?)
  end

  def strands = @machine.metrics[:strands_live]

  # What is raised may end up as the result of an evaluation that nobody awaits.
  def broken(rule)
    @broken ||= rule
    raise Broken, rule
  end

  def say(node, text)
    @said << "#{node.name.empty? ? "root" : node.name} #{text}"
  end

  # --- growing ---

  # Runs the block as a step of the node, if it is not left out.
  def take(node, index)
    name = node.step_name(index)
    return if @only && !@only.key?(name)

    @step_names << name
    node.draw(index)
    yield
  end

  # Starts a run by one of the four forms; answers its node.
  def grow(parent, index)
    return if @nodes.size >= NODES_MAX || parent.depth >= DEPTH_MAX

    @nodes << (node = Node.new(@seed, parent, index))
    body = Ringspun.concurrent_proc { live(node) }
    node.form = parent.one_of(%i[call call_nonblock call_detached call_and_forget])
    say(parent, "starts #{node.name} by #{node.form}")
    value = rescuing(parent) { body.__send__(node.form).tap { |returned| node.returned << returned } }
    node.evaluation ||= value if node.form == :call_detached
    node
  end

  def live(node)
    broken("#{node.name} begins, though it was concluded before") if node.concluded_to.any?
    broken("one evaluation for two runs, in #{node.name}") unless [nil, Evaluation.current].include?(node.evaluation)

    node.begins(Evaluation.current)
    steps = node.between(0, STEPS_MAX)
    result = node.rand(10).zero? ? Failure.new("of #{node.name}") : node.rand(1000)
    linger = node.rand(3).zero? ? node.seconds : nil
    (1..steps).each { |index| take(node, index) { step(node, index) } }
    raise result if result.is_a?(Failure)

    node.ended_with << result
    result
  rescue StandardError => error
    node.ended_with << error
    raise error # `raise` alone is another error on mruby
  ensure
    begin
      took(Ringspun.wait(linger)) if linger
      lingered = true
    ensure
      node.ended_with.clear unless lingered
      say(node, "ends")
      node.ensured += 1
    end
  end

  def rescuing(node)
    yield
  rescue Failure, Ringspun::TerminatedError, Evaluation::Error => error
    raise error if node.rand(8).zero?
  end

  def one_of_known(node) = node.one_of(@nodes.select(&:evaluation))

  # --- what one does ---

  STEPS = %i[wait wait grow grow grow await await_fastest conclude conclude resume resumed].freeze

  def step(node, index)
    case node.one_of(STEPS)
    when :wait then wait(node, node.seconds)
    when :grow then await_child(node, grow(node, index))
    when :await then rescuing(node) { await(node, one_of_known(node), within: node.seconds) }
    when :await_fastest then rescuing(node) { await_fastest(node) }
    when :conclude then conclude(node, one_of_known(node))
    when :resume then rescuing(node) { resume(node, one_of_known(node)) }
    when :resumed then rescuing(node) { await_resume(node, node.seconds) }
    end
  end

  # A wait was ended by a resume, which is its value then.
  def took(value)
    @resumed += 1 if value == :resumed
    value
  end

  def wait(node, seconds)
    say(node, "waits #{seconds} s")
    took(Ringspun.wait(seconds))
  end

  # Without a limit: no run waits so for one above it, and so none for itself.
  def await_child(node, child)
    rescuing(node) { await(node, child) } if child&.evaluation && node.rand(2).zero?
  end

  def await(node, other, **options)
    options[:timeout_result] = :late if options[:within] && node.rand(2).zero?
    say(node, "awaits #{other.name}#{", for #{options[:within]} s" if options[:within]}")
    till = @machine.now + options[:within] if options[:within]
    other.evaluation.await_result(**options) do |result|
      own = other.ended_with.any? { |one| one.equal?(result) } # a TimeoutError, too, may be a result
      if result == :late || (result.is_a?(Evaluation::TimeoutError) && !own)
        check_late(till, "for #{other.name}", other)
      elsif took(result) != :resumed
        other.seen << result
      end
      result
    end
  rescue Ringspun::UsageError => error # itself, or one that called it
    raise error unless error.message.include?("its own result")
  end

  def await_fastest(node)
    others = Array.new(node.between(2, 4)) { one_of_known(node) }
    seconds = node.seconds
    say(node, "awaits the fastest of #{others.map(&:name).join(", ")}, for #{seconds} s")
    till = @machine.now + seconds
    fastest = took(Ringspun.await_fastest(*others.map(&:evaluation), within: seconds, timeout_result: :late))
    case fastest
    when :resumed then nil
    when :late then check_late(till, "for the fastest", *others.reject(&:unwinds?)) # which it is told of later
    else broken("not concluded, and the fastest") unless fastest.concluded?
    end
  end

  def await_resume(node, seconds)
    say(node, "awaits a resume, for #{seconds} s")
    till = @machine.now + seconds
    value = took(Ringspun.await_resume!(within: seconds, timeout_result: :late))
    value == :late ? check_late(till, "for a resume") : (broken("resumed with #{value.inspect}") unless value == :resumed)
  end

  def resume(node, other)
    say(node, "resumes #{other.name}")
    other.evaluation.resume!(:resumed)
    @resumes += 1
  end

  # From outside, it has unwound then.
  def conclude(node, other)
    value = node.one_of([Object.new, Failure.new("to which #{other.name} is concluded")])
    return if other.evaluation.concluded?

    say(node, "concludes #{other.name}")
    other.concluded_to << value
    outside = other.begun && !other.fiber.equal?(Fiber.current)
    other.evaluation.conclude_to(value)
    broken("#{other.name} is concluded from outside, and has not unwound") if outside && other.ensured.zero?
  end

  # --- the rules ---

  def await_all
    TURNS_MAX.times do
      return if @nodes.all?(&:over?)

      rescue_all { Ringspun.wait(0.001) }
    end
    broken("still not over: #{@nodes.reject(&:over?).map(&:name).join(", ")}")
  end

  def rescue_all
    yield
  rescue Failure, Ringspun::TerminatedError, Evaluation::Error
    nil
  end

  # A limit passes when its time has come, and not where there is a result by then.
  def check_late(till, what, *nodes)
    broken("a wait #{what} ended before its limit") if @machine.now < till - MICROSECONDS

    node = nodes.find { |each| each.evaluation.concluded? }
    broken("a wait #{what} passed its limit, and #{node.name} is concluded") if node
  end

  # Each resume ends one wait, if the run was not ended meanwhile.
  def check_resumes
    broken("#{@resumes} resumes ended #{@resumed} waits") if @resumed > @resumes
    return if @resumed == @resumes || @nodes.any? { |node| node.concluded_to.any? }

    broken("#{@resumes} resumes ended #{@resumed} waits, and nobody was concluded")
  end

  def check(node)
    broken("the ensure block of #{node.name} ran #{node.ensured} times") unless node.ensured == (node.begun ? 1 : 0)
    broken("#{node.name} was concluded #{node.concluded_to.size} times") if node.concluded_to.size > 1

    result = node.evaluation.await_result { |final| break final }
    wanted = [*node.concluded_to, *node.ended_with].first(1)
    unless wanted.all? { |one| one.equal?(result) }
      broken("#{node.name} came to #{wanted[0].inspect}, and its result is #{result.inspect}")
    end
    broken("several results of #{node.name}: #{[*node.seen, result].inspect}") unless node.seen.all? { |one| one.equal?(result) }
    check_returned(node, result)
  end

  def check_returned(node, result)
    allowed = { call: [result], call_nonblock: [node.evaluation, result], call_detached: [node.evaluation],
                call_and_forget: [nil] }.fetch(node.form)
    return if node.returned.all? { |value| allowed.any? { |one| one.equal?(value) } }

    broken("#{node.form} of #{node.name} returned #{node.returned[0].inspect}, and its result is #{result.inspect}")
  end
end
