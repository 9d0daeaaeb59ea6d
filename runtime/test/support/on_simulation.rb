# frozen_string_literal: true

# Included by a subclass of a test class: the same tests on a simulated machine of the same thread, and so of the child
# processes that they make. Its clock jumps; what it has open is virtual.
module OnSimulation
  def self.included(test_class) = test_class.include(AnyBackend)

  # What goes wrong there, as in Simulation.run.
  def faults = true

  def before_setup
    Ringspun::Machine.current.close
    Ringspun::Machine.new(backend: :sim, faults: faults)
    super
  end

  def after_teardown
    super
    left = Ringspun::Machine.current.backend.name == :sim ? Ringspun::Machine.current.__send__(:sim_open_descriptors) : 0
    assert_equal 0, left, "virtual descriptors outlive the test"
  ensure
    Ringspun::Machine.current.close
  end

  private

  def child(code, *arguments, env: {}, **options)
    super(code, *arguments, env: { "RINGSPUN_BACKEND" => "sim", **env }, **options)
  end
end
