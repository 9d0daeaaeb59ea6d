# frozen_string_literal: true

require "test_helper"
require "concurrently"
require "rbs"

# sig/concurrently.rbs names what there is.
class ConcurrentlySignaturesTest < Minitest::Test
  PATH = File.expand_path("../../sig/concurrently.rbs", __dir__)

  # Public for Ruby, and marked `@api private`.
  INTERNAL = { Concurrently::Debug => %i[calls concludes log_schedule suspended traced waits_for] }.freeze

  def test_every_method_and_every_signature
    assert_equal methods_of(Concurrently), said
  end

  def said
    file = RBS::Buffer.new(name: PATH, content: File.read(PATH))
    RBS::Parser.parse_signature(file).last.flat_map { |declaration| methods_said(declaration, "") }.sort
  end

  def methods_said(declaration, namespace)
    return [] unless declaration.respond_to?(:each_member) && !declaration.is_a?(RBS::AST::Declarations::Interface)

    name = "#{namespace}#{declaration.name}"
    own = declaration.each_member.grep(RBS::AST::Members::MethodDefinition).map do |method|
      "#{name}#{method.singleton? ? "." : "#"}#{method.name}"
    end
    own + declaration.each_decl.flat_map { |inner| methods_said(inner, "#{name}::") }
  end

  def methods_of(namespace)
    own = namespace.public_instance_methods(false) + namespace.private_instance_methods(false).grep(:initialize)
    own += namespace.private_instance_methods(false) if namespace == Concurrently::KernelMethods
    own.map! { |name| "#{namespace}##{name}" }
    singleton = namespace.singleton_methods(false) - INTERNAL.fetch(namespace, [])
    inner = namespace.constants(false).map { |name| namespace.const_get(name) }.grep(Module)
    inner.select! { |each| each.name.start_with?("#{namespace}::") }
    (own + singleton.map { |name| "#{namespace}.#{name}" } + inner.flat_map { |each| methods_of(each) }).sort
  end
end
