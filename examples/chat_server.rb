# frozen_string_literal: true

# A chat server: every line that somebody says goes to all the others. Then three people who use it at once.
#
#   bin/bundle exec ruby examples/chat_server.rb          # shows a conversation
#   bin/bundle exec ruby examples/chat_server.rb 4000     # serves on that port; talk to it with `nc localhost 4000`
#
# Prints:
#   Ada sees: Ben has come | Cleo has come | Ben: hello | Cleo has gone
#   Ben sees: Cleo has come | Cleo has gone
#   0 people are left

require "ringspun"

# Who is there, by name. A write never waits for one who does not read: who falls too far behind is sent away.
class Chat
  LATE = 0.1

  def initialize = @people = {}

  def size = @people.size

  def attend(stream)
    stream.write_line("Your name?")
    name = stream.read_line(limit: 40) or return
    return stream.write_line("There is a #{name} already.") if @people.key?(name)

    stay(name, stream)
  end

  private

  def stay(name, stream)
    tell("#{name} has come")
    @people[name] = stream
    stream.write_line("Welcome, #{name}.")
    stream.each_line(limit: 1000) { |line| tell("#{name}: #{line}", except: name) }
  ensure
    @people.delete(name)
    tell("#{name} has gone")
  end

  def tell(line, except: nil)
    @people.to_a.each do |name, stream|
      stream.write_line(line, timeout: LATE) unless name == except
    rescue Ringspun::Error, SystemCallError
      @people.delete(name)
    end
  end
end

# Somebody who has come in and seen the welcome.
def enter(server, name)
  stream = Ringspun.connect_tcp("127.0.0.1", server.port, timeout: 10)
  stream.read_line
  stream.write_line(name)
  stream.read_line
  stream
end

chat = Chat.new
if ARGV.empty?
  Ringspun.run do
    server = Ringspun.listen_tcp("127.0.0.1", 0, first_byte: nil) { |stream| chat.attend(stream) }
    ada, ben, cleo = %w[Ada Ben Cleo].map { |name| enter(server, name) }
    ben.write_line("hello")
    cleo.read_line
    cleo.close
    puts "Ada sees: #{Array.new(4) { ada.read_line }.join(" | ")}"
    puts "Ben sees: #{Array.new(2) { ben.read_line }.join(" | ")}"
    [ada, ben].each(&:close)
    server.stop
    puts "#{chat.size} people are left"
  end
else
  Ringspun.run do
    server = Ringspun.listen_tcp("127.0.0.1", Integer(ARGV.first), first_byte: nil) { |stream| chat.attend(stream) }
    puts "listening on port #{server.port}; end with Ctrl-C"
    server.wait
  end
end
