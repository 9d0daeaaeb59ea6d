# frozen_string_literal: true

# What is written to a file, line by line, as `tail -F` shows it: also when it is cut, or moved away and made anew, as logs are.
#
#   bin/bundle exec ruby examples/file_tail.rb           # follows a file that it writes, cuts and rotates itself
#   bin/bundle exec ruby examples/file_tail.rb FILE      # follows that one until Ctrl-C
#
# Prints:
#   first
#   second, in two pieces
#   third, after the file was cut
#   fourth, in a new file

require "ringspun"
require "tmpdir"

# Follows a path, whichever file has it.
class Tail
  CHUNK = 65_536

  def initialize(machine, path)
    @machine = machine
    @path = File.expand_path(path)
  end

  # Yields each line that is written from now on, until the folder goes. It is the folder that is watched, because there a new
  # file gets the name, and before the file is opened, so that nothing is missed.
  def each_line(&)
    watch = Ringspun.watch(File.dirname(@path))
    open_file
    @at = @machine.statx(@file)[:size] if @file
    watch.each { |event| follow(&) if concerns?(event) }
  ensure
    watch&.close
    close_file
  end

  private

  # After an :overflow nobody knows what has been missed.
  def concerns?(event) = [event.path, event.from].include?(@path) || event.kind == :overflow

  # While there is no new file, the old one may still get lines.
  def follow(&)
    read_lines(&)
    return unless replaced?

    close_file
    open_file
    read_lines(&)
  end

  def open_file
    @file = @machine.open(@path)
    start_anew
  rescue Errno::ENOENT
    nil
  end

  def start_anew
    @at = 0
    @rest = String.new
  end

  def close_file
    @machine.close(@file) if @file
    @file = nil
  end

  def replaced?
    inode = @machine.statx(@path)[:inode]
    !@file || inode != @machine.statx(@file)[:inode]
  rescue Errno::ENOENT
    false
  end

  def read_lines
    return unless @file

    start_anew if @machine.statx(@file)[:size] < @at # it was cut
    while @machine.pread(@file, @bytes ||= String.new, @at, CHUNK).positive?
      @at += @bytes.bytesize
      *lines, @rest = (@rest + @bytes).split("\n", -1)
      lines.each { |line| yield line }
    end
  end
end

def demonstrate(machine, path)
  File.write(path, "before\n")
  lines = Ringspun::Queue.new
  tail = machine.spin { Tail.new(machine, path).each_line { |line| lines.push(line) } }
  machine.yield until tail.waits_for
  add = ->(text) { File.write(path, text, mode: "a") }

  add.call("first\n")
  puts lines.pop
  add.call("second, in")
  add.call(" two pieces\n")
  puts lines.pop
  File.truncate(path, 0)
  add.call("third, after the file was cut\n")
  puts lines.pop
  File.rename(path, "#{path}.1")
  add.call("fourth, in a new file\n")
  puts lines.pop
  machine.terminate(tail)
end

Ringspun.run do |machine|
  if ARGV.empty?
    Dir.mktmpdir { |folder| demonstrate(machine, File.join(folder, "log")) }
  else
    Tail.new(machine, ARGV.first).each_line { |line| puts line }
  end
end
