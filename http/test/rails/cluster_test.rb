# frozen_string_literal: true

require "http_helper"
require "json"
require "support/rails_site"

RailsSite.folder

# An application that its parent has loaded, in several processes.
class RailsClusterTest < Minitest::Test
  include AnyBackend

  # The parent has used the database. Clients ask until all workers have been replaced.
  CODE = <<~'RUBY'
    path = "#{ENV.fetch("SITE")}/web.sock"
    count = Note.count
    events, tell = IO.pipe
    parent = fork do
      events.close
      Ringspun::HTTP.run(Rails.application, listen: path, workers: 2, logger: tell, errors: StringIO.new)
    end
    tell.close
    2.times { nil until events.gets.include?("event=ready") }
    done = false
    ask = lambda do
      UNIXSocket.open(path) do |socket|
        socket.write("GET /count HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        socket.read
      end
    end
    asking = Array.new(4) do
      Thread.new do
        answers = []
        answers << ask.call until done
        answers
      end
    end
    Process.kill(:HUP, parent)
    nil until events.gets.include?("event=reloaded")
    done = true
    answers = asking.flat_map(&:value)
    Process.kill(:TERM, parent)
    wrong = answers.reject { |answer| answer.start_with?("HTTP/1.1 200 ") && answer.end_with?("\r\n\r\n#{count}") }
    puts JSON.generate([wrong, answers.empty?, Process.wait2(parent).last.exitstatus])
  RUBY

  def test_workers_are_replaced_without_a_request_that_fails
    said = RailsApp.ruby(RailsSite.folder, *%w[-r ./config/environment -r stringio -e], CODE, env: RailsSite.env)
    # On Rails 7.2 sqlite3 warns before it, in each child, of the parent's connection.
    assert_equal [[], false, 0], JSON.parse(said.lines.last)
  end
end
