# frozen_string_literal: true

# A crawler in three stages: what is to be fetched, fetching, and reading what was fetched. It fetches at most FETCHERS pages
# at once, and starts at most one every INTERVAL seconds, as a polite guest does. The site is made up, so that the program needs
# no network.
#
#   bin/bundle exec ruby examples/pipeline.rb
#
# Prints:
#   30 pages, none of them twice
#   never more than 3 at once, and never faster than allowed
#   1 page could not be fetched: /20

require "ringspun"

FETCHERS = 3
INTERVAL = 0.002
LATENCY = 0.004

# Page n links to pages 2n + 1 and 2n + 2, and back to its parent.
class Site
  PAGES = 30

  attr_reader :most_at_once, :started_at

  def initialize(machine)
    @machine = machine
    @at_once = @most_at_once = 0
    @started_at = []
  end

  def fetch(path)
    number = Integer(path.delete_prefix("/"))
    @started_at << @machine.now
    @most_at_once = [@most_at_once, @at_once += 1].max
    @machine.sleep(LATENCY * (1 + number % 3))
    raise IOError, "page #{number} is broken" if number == 20

    [(number - 1) / 2, 2 * number + 1, 2 * number + 2].select { |other| other.between?(0, PAGES - 1) }
                                                      .map { |other| "/#{other}" }
  ensure
    @at_once -= 1
  end
end

class Crawler
  attr_reader :seen, :failed

  def initialize(machine, site)
    @machine = machine
    @site = site
    @seen = {}
    @failed = []
    @frontier = Ringspun::Queue.new # without a limit: who reads pages must not wait for those who fetch them
    @fetched = Ringspun::SizedQueue.new(FETCHERS)
    @tickets = Ringspun::SizedQueue.new(1)
    @open = 0
  end

  def crawl(start)
    visit(start)
    @machine.scope do |scope|
      pace = scope.spin { @machine.periodically(INTERVAL) { @tickets << :go } }
      FETCHERS.times { scope.spin { fetch_pages } }
      read_pages
      @frontier.close
      @machine.terminate(pace)
    end
  end

  private

  def visit(path)
    return if @seen[path]

    @seen[path] = true
    @open += 1
    @frontier << path
  end

  def fetch_pages
    while (path = @frontier.pop)
      @tickets.pop
      @fetched << fetch(path)
    end
  end

  def fetch(path)
    @machine.timeout(1) { @site.fetch(path) }
  rescue IOError, Ringspun::TimeoutError
    @failed << path
    []
  end

  # The end is reached when every page that was visited has been read.
  def read_pages
    until @open.zero?
      @fetched.pop.each { |link| visit(link) }
      @open -= 1
    end
  end
end

Ringspun.run do |machine|
  site = Site.new(machine)
  crawler = Crawler.new(machine, site)
  crawler.crawl("/0")

  fetched = site.started_at.size
  puts "#{fetched} pages, none of them twice" if fetched == crawler.seen.size
  elapsed = site.started_at.last - site.started_at.first
  polite = site.most_at_once <= FETCHERS && elapsed >= INTERVAL * (fetched - 3) # one at first, and two tickets in stock
  puts "never more than #{FETCHERS} at once, and never faster than allowed" if polite
  puts "#{crawler.failed.size} page could not be fetched: #{crawler.failed.join(", ")}"
end
