# frozen_string_literal: true

require "etc"
require "fileutils"
require "open3"
require "tmpdir"

# What the binding assigns in those structs of the engine that it sees, instead of asking the engine. A compiler finds it, for it
# knows of what type everything is: it gets a copy of the headers in the engine's include/ in which all members are const. It does
# not get the engine's src/, in which all tables are: any compiler refuses a look into these.
class Seam
  # @param folder [String] that has engine/ and binding/
  # @param flags [Array<String>] with which the binding compiles, but for the folders above
  def initialize(folder, flags = [])
    @folder = folder
    @flags = flags
  end

  # @return [Hash{String => Array<String>}] by file, fields that it assigns, each as often as it does
  def assignments = by_file(READ_ONLY)

  # What a caller fills in to tell the engine, or to make a world for it.
  REQUEST = %w[rs_request rs_transfer rs_vector rs_message_transfer rs_splice_transfer rs_socket_address rs_open_request
               rs_statx_request rs_wait_request rs_socket_request rs_option_request rs_path_request rs_room_request].freeze
  PLAIN = [*REQUEST, "rs_options", "rs_driver", "rs_sim_faults", "rs_message", "rs_turn_seen"].freeze
  MEMBERS = /(?<members>(?:[^{}]|(?<braces>\{(?:[^{}]|\g<braces>)*\}))*)/
  STRUCT = /^(?<head>typedef struct(?: \w+)? \{)#{MEMBERS}(?<tail>\} (?<name>\w+);)/
  # What stands behind a brace is the name of a struct inside, of which the members are const.
  MEMBER = /(?<=[;{]|\A)[^;{}]+;/

  def self.with_constant_members(header)
    code = header.gsub(%r{/\*.*?\*/}m) { |comment| comment.gsub(/[^\n]/, " ") }
    known = code.scan(/^(?:typedef )?(?:struct|union)\b[\w ]*\{/).size == code.scan(STRUCT).size
    raise ArgumentError, "a struct of a form that is not known: #{header}" unless known

    code.gsub(STRUCT) do |all|
      head, members, tail, name = $~.values_at(:head, :members, :tail, :name)
      next all if PLAIN.include?(name)

      "#{head}#{members.gsub(MEMBER) { |member| constant(member) }}#{tail}"
    end
  end

  # Of a pointer itself, and not what it leads to.
  def self.constant(member)
    return member.sub(/\(\*(\w+)\)/, '(*const \1)') if member.include?("(*")
    return member.sub(/\w/, 'const \0').sub(/\s*:\s*\d+/, "") unless member.include?("*") # gcc lets a const bit-field be assigned
    raise ArgumentError, "pointers among others: #{member}" unless member.split(",").all? { |one| one.include?("*") }

    member.gsub(/\*\s*(\w+)(?=\s*[,;\[])/, '*const \1')
  end

  private

  def errors
    @errors ||= Dir.mktmpdir do |copy|
      copy_into(copy)
      Dir.glob("engine/include/**/*.h", base: copy) do |header|
        path = File.join(copy, header)
        File.write(path, self.class.with_constant_members(File.read(path)))
      end
      errors_in(copy)
    end
  end

  # The engine lies behind a link.
  def copy_into(copy)
    FileUtils.cp_r(Dir[File.join(@folder, "*")], copy)
    link = File.join(copy, "engine")
    return unless File.symlink?(link)

    FileUtils.rm(link)
    FileUtils.cp_r(File.realpath(File.join(@folder, "engine")), copy)
  end

  # With a compiler for each processor.
  def errors_in(copy)
    all = Dir.glob("binding/**/*.c", base: copy)
    parts = all.each_slice(all.size.fdiv(Etc.nprocessors).ceil).map { |part| Thread.new { compile(copy, part) } }
    parts.flat_map { |part| part.value.lines.grep(/\berror:/) }
  end

  def compile(copy, part)
    Open3.capture2e({ "LC_ALL" => "C" }, "gcc", "-fsyntax-only", "-fmax-errors=0", "-w", "-std=gnu11", "-D_GNU_SOURCE", "-I.",
                    "-Iengine/include", *@flags, *part, chdir: copy).first
  end

  WHERE = /\A(?:\.\/)?([^:]+):\d+:\d+: error: /
  READ_ONLY = /#{WHERE}(?:assignment|increment|decrement) of (?:read-only \w+|member) '([^']+)'/

  # A header's are there for each file that includes it. One in a header of the engine's is its own, in an inline function.
  def by_file(form)
    strange = errors.grep_v(form).first
    raise ArgumentError, strange if strange

    pairs = errors.map { |error| error.delete_prefix("./") }.uniq.filter_map { |error| error.match(form)&.captures }
    own = pairs.select { |file, _| file.start_with?("binding/") }
    own.group_by(&:first).transform_values { |found| found.map(&:last).sort }.sort.to_h
  end
end
