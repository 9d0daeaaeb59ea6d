# frozen_string_literal: true

require_relative "ruby_reader"

# Who knows whom inside a folder of Ruby whose files and folders are rooms, each of which is to know only those before it. Who
# names a constant knows the file that defines it, and who requires a file knows that one. A class that is opened in several files
# belongs to the room that comes first.
class RubyRooms
  # @param rooms [Array<String>] in their order: folders, files, or both of one name
  # @param texts [Hash{String => String}] by the names of files
  def initialize(rooms, texts)
    @rooms = rooms
    @readers = texts.transform_values { |text| RubyReader.of(text) }
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
      full = RubyReader.resolve(name, around) { |each| @owners.key?(each) }
      full if full && @owners[full].map { |owner| rank(owner) }.min > rank(path)
    end
  end

  def required_above(path, reader)
    files = reader.required.map { |name| "#{File.expand_path(name, "/#{File.dirname(path)}").delete_prefix("/")}.rb" }
    files.select { |file| @readers.key?(file) && rank(file) > rank(path) }
  end
end
