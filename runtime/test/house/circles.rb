# frozen_string_literal: true

# The circles among files that use each other: whoever would read one file of a circle has to read them all.
class Circles
  # @param arrows [Hash{String => Hash{String => Array<String>}}] by file, the files that it uses, and by which names
  def initialize(arrows)
    @arrows = arrows
  end

  # @return [Array<Array<String>>] the files of each circle, which are two or more
  def found
    reached = files.to_h { |file| [file, reached_from(file)] }
    circling = files.select { |file| reached[file].key?(file) }
    circling.map { |file| circling.select { |other| reached[file].key?(other) && reached[other].key?(file) }.sort }.uniq.sort
  end

  # @param pairs [Array<Array(String, String)>] arrows, each from one file to another
  # @return [Circles] without these
  def without(pairs)
    gone = pairs.to_h { |pair| [pair, true] }
    Circles.new(@arrows.to_h { |file, uses| [file, uses.reject { |to, _| gone.key?([file, to]) }] })
  end

  # @return [Array<Array(String, String)>] arrows that run back in an order of the files that has few of them: without these there
  #   is no circle, and without all of them but one there is one
  def back
    pairs = found.flat_map { |files| back_in(ordered(files)) }
    rest = without(pairs)
    pairs.reject { |from, to| !rest.reaches?(to, from) && rest.add(from, to) }
  end

  # @return [Boolean] whether one file requires another, maybe through others
  def loads?(file, other) = reached_from("#{file}.rb").key?("#{other}.rb")

  # @return [Array<String>] the names by which a file uses another
  def names(from, to) = @arrows.fetch(from).fetch(to)

  def files = @arrows.keys

  # @return [Array<Array(String, String)>]
  def pairs = @arrows.flat_map { |file, uses| uses.keys.map { |to| [file, to] } }

  protected

  def add(from, to) = @arrows.fetch(from)[to] = []

  def reaches?(from, to) = reached_from(from).key?(to)

  private

  def targets(file) = @arrows.fetch(file, {}).keys

  # With the file itself only if there is a way back.
  def reached_from(file)
    found = {}
    more = [file]
    more.concat(targets(more.pop).reject { |to| found.key?(to) }.each { |to| found[to] = true }) until more.empty?
    found
  end

  # What is used comes first. A file moves to the place where the fewest names run back, for as long as that helps.
  def ordered(files)
    order = files.sort_by { |file| [(targets(file) & files).size - users(file, files).size, file] }
    loop do
      better = order.reduce(order) { |best, file| moved(best, file) }
      return order if better == order

      order = better
    end
  end

  def users(file, files) = files.select { |other| targets(other).include?(file) }

  # To the place that costs less than its own by most, if there is one.
  def moved(order, file)
    others = order - [file]
    costs = [others.sum { |other| weight(file, other) }] # in front of all, each that it uses is behind it
    others.each { |other| costs << costs.last - weight(file, other) + weight(other, file) }
    at = order.index(file)
    best = costs.min < costs[at] ? costs.index(costs.min) : at
    others.insert(best, file)
  end

  def weight(from, to) = @arrows.fetch(from)[to]&.size || 0

  def back_in(order)
    order.each_with_index.flat_map { |file, at| (targets(file) & order.drop(at + 1)).map { |to| [file, to] } }
  end
end
