# frozen_string_literal: true

require_relative "circles"
require_relative "rooms"
require_relative "ruby_arrows"

# A folder whose files are to use each other without a circle. Its rooms are the folders in it, each with the file of its name.
class House
  ROOT = File.expand_path("../../..", __dir__)
  # By folder, in what folder of it the rooms are. Those of C are named by the last part in what they include.
  INSIDE = {
    "engine" => "", "runtime/ext/ringspun/binding" => "", "mruby/src" => "",
    "postgres/ext/ringspun_postgres" => "", "http/ext/ringspun_http" => "", "http/lib" => "ringspun/http/",
    "runtime/lib" => "ringspun/", "postgres/lib" => "ringspun/postgres/", "jobs/lib" => "ringspun/jobs/", "bench/lib" => "bench/"
  }.freeze

  # The folders of a house whose files lie in more than one, as one.
  PARTS = { "engine" => %w[include/ringspun src] }.freeze
  # How includes name a house, where not by the last part of its folder.
  NAMES = { "engine" => "ringspun" }.freeze

  def self.all = INSIDE.keys.map { |folder| at(folder) }

  # Each is read once by all that judge it.
  def self.at(folder) = (@at ||= {})[folder] ||= new(folder)

  attr_reader :folder

  # @param texts [Hash{String => String}] by the names of files in the folder
  def initialize(folder, texts = House.texts(folder))
    @folder = folder
    @texts = texts
  end

  def self.texts(folder)
    texts = PARTS.fetch(folder, [""]).map { |part| texts_in(File.join(ROOT, folder, part)) }.reduce(:merge)
    raise ArgumentError, "no file in #{folder}" if texts.empty?

    texts.sort.to_h
  end

  def self.texts_in(path)
    Dir.glob("**/*.{c,h,rb}", base: path).to_h { |file| [file, File.read(File.join(path, file))] }
  end
  private_class_method :texts_in

  def circles
    ruby = @texts.select { |path, _| path.end_with?(".rb") }
    c = @texts.except(*ruby.keys)
    name = NAMES.fetch(@folder, File.basename(@folder))
    @circles ||= Circles.new({ **Rooms.new(name, [], c).arrows, **RubyArrows.new(ruby).to_h })
  end

  # @return [Array<String>] what is against the rules: arrows that close a circle
  def faults = circles.back.map { |from, to| "#{show(from, to)} closes a circle" }

  # What is one thing, to be removed whole, is a file that programs require and the folder of its name.
  #
  # @param door [String] that file, without its ending
  # @return [Array<String>] what is against that: others that use or require something of it, and files in the folder that neither
  #   load the door nor are loaded with it
  def past(door)
    ours = ->(file) { "#{file}/".start_with?("#{door}/", "#{door}.rb/") }
    into = circles.pairs.select { |from, to| ours[to] && !ours[from] }.map { |pair| show(*pair) }
    lazy = @texts.reject { |path, _| ours[path] }.select { |_, text| text.match?(/^\s*require "#{door}["\/]/) }.keys
    beside = apart(door, files.select(&ours))
    into + lazy.map { |path| "#{path} requires #{door}" } + beside.map { |file| "#{file} is not behind #{door}" }
  end

  # @return [String] an arrow with the names by which it is one
  def show(from, to) = "#{from} -> #{to} (#{circles.names(from, to).join(", ")})"

  # @return [Array<Array>] by room and between rooms: files, arrows, how many of these run back, and sizes of the circles
  def table
    rooms = files.group_by { |file| room_of(file) }
    rows = rooms.sort.map { |room, inside| [room, inside.size, *counts { |pair| pair.all? { |file| room_of(file) == room } }] }
    [*rows, ["between rooms", files.size, *counts { |from, to| room_of(from) != room_of(to) }],
     ["all", files.size, *counts { true }]]
  end

  # @return [String] the table, but for rooms of one file, and the arrows that run back
  def report
    lines = table.reject { |_, files| files == 1 }.map do |room, *counts, circles|
      format("%-18s %5d %7d %5d   %s", room, *counts, circles.join(" "))
    end
    back = circles.back.map { |from, to| "  - #{from} -> #{to} # #{circles.names(from, to).join(" ")}" }
    [folder, "room               files  arrows  back   circles", *lines, *back].map { |line| "#{line.rstrip}\n" }.join
  end

  private

  # Without the door, the files that load it, and what one of these loads.
  def apart(door, ours)
    doors = ours.select { |file| file == door || circles.loads?(file, door) }
    (ours - doors).reject { |file| doors.any? { |one| circles.loads?(one, file) } }
  end

  # Headers and requires among themselves, which are judged, and not counted.
  APART = /\.(h|rb)\z/

  def files = circles.files.grep_v(APART)

  def counts(&chosen)
    pairs = circles.pairs.reject { |from, _| from.match?(APART) }.select(&chosen)
    within = circles.without(circles.pairs - pairs)
    [pairs.size, within.back.size, within.found.map(&:size)]
  end

  def room_of(file) = file.delete_prefix(INSIDE.fetch(@folder, ""))[%r{\A[^/]+}]
end
