# frozen_string_literal: true

# Who knows whom inside a house of C (the engine, the binding) whose folders are rooms, each of which is to know only those before
# it. A room may have rooms of its own, which come before it. A file in no folder is a room by itself, if that is named. What a
# file includes says so, and which functions and variables of others it names. A name belongs to the file that defines it, whoever
# declares it.
class Rooms
  INCLUDE = /^\s*#\s*include\s+"([^"]+)"/
  # Definitions stand at the beginning of a line.
  FUNCTION = /\w[\w *]*?\b(\w+)\([^;{}]*\)\s*\{/
  VARIABLE = /\w+(?:\[[^\]]*\])*/
  VARIABLES = /(?!(?:struct|union|enum) \w+;)\w[\w *]*?[ *]((?:#{VARIABLE},\s*)*#{VARIABLE})(?:\s*=[^;]*)?;/
  FOR_OTHERS = /^(?![\w ]*\b(?:static|extern|typedef)\b)/
  OWN_FUNCTION = /^(?:\w+ )*static #{FUNCTION}/
  # On one line, or up to a brace at the beginning of one.
  INLINE = /^static inline [^;{}]*\{(?:[^\n]*\}$|\n.*?^\})/m

  # @param house [String] its name, by which an include may begin
  # @param rooms [Array<String>] in their order
  # @param texts [Hash{String => String}] by the names of files in the house
  def initialize(house, rooms, texts)
    @house = house
    @rooms = rooms
    @codes = texts.transform_values { |text| text.gsub(%r{/\*.*?\*/}m, "") }
    @owners = @codes.flat_map { |path, code| defined_in(path, code).map { |name| [name, path] } }.to_h
  end

  # @return [Array<String>] files in folders that are no rooms
  def strangers
    @codes.keys.select { |path| path.include?("/") && (!@rooms.include?(room_of(path)) || beside_rooms?(path)) }
  end

  # @return [Hash{String => Array<String>}] files that know rooms after their own: which headers and names
  def above
    found = @codes.to_h do |path, code|
      known = includes_of(path, code).to_h { |header| [header, header] }.merge(@owners.slice(*names_in(code)))
      [path, known.select { |_, owner| above?(owner, path) }.keys.sort]
    end
    found.reject { |_, names| names.empty? }
  end

  # @return [Hash{String => Array<String>}] files that include other headers of a room than the one of its name, from outside.
  #   Rooms of one room may share more, which stands in their inner.h
  def inner_headers
    found = @codes.to_h { |path, code| [path, includes_of(path, code).select { |header| inner?(header, path) }.sort] }
    found.reject { |_, headers| headers.empty? }
  end

  # A file and the header of its name are one module. A header that declares what others define does not use it: of that, only its
  # inline functions count. Includes are judged among headers alone, for a file may need just a type of a header.
  #
  # @return [Hash{String => Hash{String => Array<String>}}] by module, the modules that it uses, and by which names
  def arrows
    @codes.each_with_object({}) do |(path, code), all|
      uses = all[module_of(path)] ||= {}
      others = used_in(path, code).reject { |_, owner| module_of(owner) == module_of(path) }
      others.each { |name, owner| (uses[module_of(owner)] ||= []) << name }
      all[path] = includes_of(path, code).to_h { |header| [header, [header]] }.slice(*@codes.keys) if path.end_with?(".h")
    end
  end

  private

  def module_of(path) = path.sub(/\.[ch]\z/, "")

  def used_in(path, code)
    text = path.end_with?(".h") ? code.scan(INLINE).join("\n") : code
    @owners.slice(*(names_in(text) - code.scan(OWN_FUNCTION).flatten))
  end

  # In a room that has rooms, in a folder that is none of these.
  def beside_rooms?(path)
    room = room_of(path)
    File.dirname(path) != room && @rooms.any? { |other| other.start_with?("#{room}/") }
  end

  # The outermost room that the header is in and the file is not.
  def inner?(header, path)
    depth = room_of(header).to_s.count("/")
    entered = (0..depth).map { |last| header.split("/")[..last].join("/") }.find { |room| !path.start_with?("#{room}/") }
    return false unless entered && @rooms.any? { |room| "#{room}/".start_with?("#{entered}/") }

    doors = [File.basename(entered), *("inner" if entered.include?("/"))]
    doors.none? { |door| header == "#{entered}/#{door}.h" }
  end

  def above?(owner, path)
    rooms = [owner, path].map { |name| @rooms.index(room_of(name)) }
    rooms.all? && rooms.first > rooms.last
  end

  # The innermost of those that have the file.
  def room_of(path)
    @rooms.select { |room| path.start_with?("#{room}/") }.max_by(&:size) || path[%r{\A\w+(?=[/.])}]
  end

  # As files are named in the house.
  def includes_of(path, code) = code.scan(INCLUDE).flatten.map { |header| resolve(header, File.dirname(path)) }

  # As a compiler does: beside the file that includes it, then in the folders that it is given.
  def resolve(header, folder)
    beside = File.expand_path(header, "/#{folder}").delete_prefix("/")
    header.start_with?(".") || @codes.key?(beside) ? beside : header.delete_prefix("#{@house}/")
  end

  # No members of structs.
  def names_in(code) = code.scan(/(?<![.>])\b[a-z]\w+/).uniq

  # Functions and variables that other files may name.
  def defined_in(path, code)
    return code.scan(/^static inline #{FUNCTION}/o).flatten if path.end_with?(".h")

    variables = code.scan(/#{FOR_OTHERS}#{VARIABLES}/o).flatten
    code.scan(/#{FOR_OTHERS}#{FUNCTION}/o).flatten + variables.flat_map { |names| names.gsub(/\[[^\]]*\]/, "").scan(/\w+/) }
  end
end
