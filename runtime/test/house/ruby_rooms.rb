# frozen_string_literal: true

require "prism"

# Who knows whom inside a folder of Ruby whose files and folders are rooms, each of which is to know only those before it. Who
# names a constant knows the file that defines it, and who requires a file knows that one. A class that is opened in several files
# belongs to the room that comes first.
class RubyRooms
  # Full names of what a file defines, and what it names: each time a name and the namespaces around it, the innermost first.
  class Reader < Prism::Visitor
    attr_reader :defined, :named, :required

    def initialize
      super
      @around = []
      @defined = []
      @named = []
      @required = []
    end

    def visit_module_node(node) = within(node)
    def visit_class_node(node) = within(node, node.superclass)

    def visit_constant_write_node(node)
      @defined << [*@around, node.name.name].join("::")
      super
    end

    def visit_constant_read_node(node) = name(node.name.name)

    def visit_constant_path_node(node)
      name(node.slice.delete_prefix("::"))
      visit(node.parent) unless node.parent.nil? || constant?(node.parent)
    end

    # A method of a module's own is named by the module and itself.
    def visit_call_node(node)
      @required << node.arguments.arguments.first.content if node.name == :require_relative
      name("#{node.receiver.slice}.#{node.name}") if constant?(node.receiver)
      super
    end

    def visit_def_node(node)
      @defined << "#{@around.join("::")}.#{node.name}" if node.receiver.is_a?(Prism::SelfNode) || @singleton
      super
    end

    def visit_singleton_class_node(node)
      @singleton = true
      super
    ensure
      @singleton = false
    end

    private

    def constant?(node) = [Prism::ConstantReadNode, Prism::ConstantPathNode].include?(node.class)

    def name(text) = @named << [text, @around.size.downto(0).map { |size| @around.first(size).join("::") }]

    def within(node, *outside)
      outside.compact.each { |each| visit(each) }
      @around.push(*node.constant_path.slice.split("::"))
      @defined << @around.join("::")
      visit(node.body)
    ensure
      @around.pop(node.constant_path.slice.split("::").size)
    end
  end

  # @param rooms [Array<String>] in their order: folders, files, or both of one name
  # @param texts [Hash{String => String}] by the names of files
  def initialize(rooms, texts)
    @rooms = rooms
    @readers = texts.transform_values { |text| Reader.new.tap { |reader| Prism.parse(text).value.accept(reader) } }
    @owners = Hash.new { |all, name| all[name] = [] }
    @readers.each { |path, reader| reader.defined.each { |name| @owners[name] << path } }
  end

  # @return [Array<String>] files that are in no room
  def strangers = @readers.keys.reject { |path| @rooms.include?(room_of(path)) }

  # @return [Array<String>] rooms without a file
  def empty = @rooms - @readers.keys.map { |path| room_of(path) }

  # @return [Hash{String => Array<String>}] files that know rooms after their own: what they name there, or require
  def above
    found = @readers.to_h { |path, reader| [path, (named_above(path, reader) + required_above(path, reader)).uniq.sort] }
    found.reject { |_, names| names.empty? }
  end

  private

  def room_of(path) = path[/\A\w+/]
  def rank(path) = @rooms.index(room_of(path))

  def named_above(path, reader)
    reader.named.filter_map do |name, around|
      full = around.map { |space| [*space, name].reject(&:empty?).join("::") }.find { |each| @owners.key?(each) }
      full if full && @owners[full].map { |owner| rank(owner) }.min > rank(path)
    end
  end

  def required_above(path, reader)
    files = reader.required.map { |name| "#{File.expand_path(name, "/#{File.dirname(path)}").delete_prefix("/")}.rb" }
    files.select { |file| @readers.key?(file) && rank(file) > rank(path) }
  end
end
