# frozen_string_literal: true

require_relative "ruby_reader"

# Which file of a folder of Ruby uses which: by a constant that the other defines, by a module's own method that it defines, or by
# opening again what the other has made. A file that only requires others, as the door of a library does, uses none of them.
class RubyArrows
  # @param texts [Hash{String => String}] by the names of files
  def initialize(texts)
    @readers = texts.to_h { |path, text| [path.delete_suffix(".rb"), RubyReader.of(text)] }
    @methods = Hash.new { |all, name| all[name] = [] }
    @readers.each { |path, reader| reader.defined.grep(/\./) { |name| @methods[name] << path } }
    @known = @readers.each_value.flat_map(&:defined).to_h { |name| [name, true] }
    @owners = owners
  end

  # Requires are judged apart, by names that end in .rb.
  #
  # @return [Hash{String => Hash{String => Array<String>}}] by file, the files that it uses, and by which names
  def to_h
    @readers.each_with_object({}) do |(path, reader), all|
      pairs = [*called(path, reader), *mentioned(reader), *reopened(reader)].uniq.reject { |owner, _| owner == path }
      all[path] = pairs.group_by(&:first).transform_values { |found| found.map(&:last) }
      all["#{path}.rb"] = required(path, reader).to_h { |file| ["#{file}.rb", ["require"]] }
    end
  end

  private

  def called(path, reader)
    reader.calls.flat_map do |constant, method, around|
      full = RubyReader.resolve(constant, around) { |name| @known.key?(name) }
      files = @methods.fetch("#{full}.#{method}", [])
      files.include?(path) ? [] : files.first(1).map { |file| [file, "#{constant}.#{method}"] }
    end
  end

  # What is only the receiver of a method whose file is known is no use of the constant's own file.
  def mentioned(reader)
    receivers = reader.calls.filter_map do |constant, method, around|
      full = RubyReader.resolve(constant, around) { |name| @known.key?(name) }
      [constant, around] if @methods.key?("#{full}.#{method}")
    end
    once(reader.named, receivers).filter_map do |name, around|
      owner = @owners[RubyReader.resolve(name, around) { |each| @known.key?(each) }]
      [owner, name] if owner
    end
  end

  # Without as many as there are receivers.
  def once(named, receivers)
    left = receivers.tally
    named.reject { |each| left.fetch(each, 0).positive? && (left[each] -= 1) }
  end

  def reopened(reader)
    again = reader.bodies.select { |name, body| @owners[name] && body.any? { |node| adds?(node) } }
    again.map { |name, _| [@owners[name], "opens #{name}"] }
  end

  def required(path, reader)
    beside = reader.required.map { |name| File.expand_path(name, "/#{File.dirname(path)}").delete_prefix("/") }
    (beside + reader.libraries).select { |file| @readers.key?(file) && file != path }
  end

  # By constant. Of several files that open a module or class, its own is the one that adds most: methods of its objects, or
  # anything but namespaces. Where several do, it is the one with its name; if there is none, it is nobody's, as a library's own
  # module is.
  def owners
    opened = Hash.new { |all, name| all[name] = [] }
    @readers.each do |path, reader|
      reader.defined.grep_v(/\./) { |name| opened[name] << [rank(reader.bodies[name]), path] }
    end
    opened.to_h { |name, ranked| [name, owner(name, ranked)] }
  end

  def owner(name, ranked)
    most = ranked.map(&:first).max
    files = ranked.select { |rank, _| rank == most }.map(&:last)
    return files.first if files.size == 1

    files.select { |file| File.basename(file) == snake(name[/\w+\z/]) }.min_by { |file| file.count("/") } unless most.zero?
  end

  # A constant that is assigned has no body.
  def rank(body)
    return 2 if body.nil? || body.any? { |node| adds?(node) }

    body.empty? || body.any? { |node| !namespace?(node) } ? 1 : 0
  end

  LOADS = %i[private_constant public_constant autoload require require_relative at_exit].freeze

  def namespace?(node)
    node.is_a?(Prism::ClassNode) || node.is_a?(Prism::ModuleNode) || (node.is_a?(Prism::CallNode) && LOADS.include?(node.name))
  end

  # A method of objects, or what makes such or includes them. A method of the module itself can be called without the rest.
  def adds?(node)
    return node.receiver.nil? && !namespace?(node) if node.is_a?(Prism::DefNode) || node.is_a?(Prism::CallNode)

    node.is_a?(Prism::AliasMethodNode)
  end

  def snake(name) = name.gsub(/([a-z\d])([A-Z])/, '\1_\2').gsub(/([A-Z]+)([A-Z][a-z])/, '\1_\2').downcase
end
