# frozen_string_literal: true

require "prism"

# What a file of Ruby defines, names and requires.
class RubyReader < Prism::Visitor
  # Full names of constants and of modules' own methods.
  attr_reader :defined
  # Each time a name and the namespaces around it, the innermost first.
  attr_reader :named
  # The same of calls of a constant's own methods: the constant, the method, the namespaces. Both are among the named as well.
  attr_reader :calls
  # What is required from beside the file, and what from the load path, when the file is loaded.
  attr_reader :required, :libraries
  # By the full name of a module or class, all that stands in its body.
  attr_reader :bodies

  # Two judges of the same file share it.
  def self.of(text) = (@of ||= {})[text] ||= new.tap { |reader| Prism.parse(text).value.accept(reader) }

  # @return [String, nil] the full name, of those for which the block answers true
  def self.resolve(name, around) = around.map { |space| [*space, name].reject(&:empty?).join("::") }.find { |each| yield each }

  def initialize
    super
    @around = []
    @defined = []
    @named = []
    @calls = []
    @required = []
    @libraries = []
    @bodies = {}
  end

  def visit_module_node(node) = within(node)
  def visit_class_node(node) = within(node, node.superclass)

  def visit_constant_write_node(node)
    @defined << [*@around, node.name.name].join("::")
    super
  end

  # One of several that are assigned together.
  def visit_constant_target_node(node) = @defined << [*@around, node.name].join("::")

  def visit_constant_read_node(node) = name(node.name.name)

  def visit_constant_path_node(node)
    name(node.slice)
    visit(node.parent) unless node.parent.nil? || constant?(node.parent)
  end

  # A method of a module's own is named by the module and itself.
  def visit_call_node(node)
    note_required(node) if %i[require require_relative].include?(node.name) && !@in_method
    call(node.receiver.slice, node.name) if constant?(node.receiver)
    super
  end

  def visit_def_node(node)
    @defined << "#{@around.join("::")}.#{node.name}" if node.receiver.is_a?(Prism::SelfNode) || @singleton
    around, @in_method = @in_method, true
    super
  ensure
    @in_method = around
  end

  def visit_singleton_class_node(node)
    @singleton = true
    super
  ensure
    @singleton = false
  end

  private

  def constant?(node) = [Prism::ConstantReadNode, Prism::ConstantPathNode].include?(node.class)

  def note_required(node)
    argument = node.arguments&.arguments&.first
    (node.name == :require ? @libraries : @required) << argument.content if argument.is_a?(Prism::StringNode)
  end

  def call(constant, method)
    name("#{constant}.#{method}")
    @calls << [constant.delete_prefix("::"), method, around(constant)]
  end

  # A name that begins with colons is no namespace's.
  def name(text) = @named << [text.to_s.delete_prefix("::"), around(text)]
  def around(name) = name.start_with?("::") ? [""] : spaces
  def spaces = @around.size.downto(0).map { |size| @around.first(size).join("::") }

  def within(node, *outside)
    outside.compact.each { |each| visit(each) }
    parts = node.constant_path.slice.delete_prefix("::").split("::")
    @around.push(*parts)
    @defined << @around.join("::")
    (@bodies[@around.join("::")] ||= []).concat(node.body.is_a?(Prism::StatementsNode) ? node.body.body : [node.body].compact)
    visit(node.body)
  ensure
    @around.pop(parts.size)
  end
end
