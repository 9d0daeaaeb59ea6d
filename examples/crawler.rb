# frozen_string_literal: true

# Follows the links of a site, several pages at once, and tells of those that are missing or too slow.
#
#   bin/bundle exec ruby examples/crawler.rb                          # crawls a small site of its own
#   bin/bundle exec ruby examples/crawler.rb http://localhost:4000/
#
# Prints:
#   200      /
#   200      /about
#   200      /deep/1
#   200      /deep/2
#   200      /deep/3
#   404      /missing
#   too slow /slow
#   200      /team
#   8 pages, 2 of them broken; at most 2 requests at once

require "ringspun"
require "uri"

# Fetches each page once: so many at once, only so many of them from one host, and none that takes too long.
class Crawler
  LINK = /href\s*=\s*["']([^"'#\s]+)/i
  PAGE_BYTES = 1_000_000

  # @return [Hash{URI => Integer, String}] what became of each page
  attr_reader :pages

  # @return [Integer] requests at once
  attr_reader :most

  def initialize(at_once: 16, per_host: 2, within: 5, pages_max: 1000)
    @turns = Ringspun::Semaphore.new(at_once)
    @hosts = Hash.new { |hosts, name| hosts[name] = Ringspun::Semaphore.new(per_host) }
    @within = within
    @pages_max = pages_max
    @pages = {}
    @now = @most = 0
  end

  # Ends when the last page that was found has been fetched.
  def crawl(start)
    Ringspun.scope { |scope| visit(scope, URI(start)) }
    self
  end

  private

  def visit(scope, url)
    return if @pages.key?(url) || @pages.size >= @pages_max

    @pages[url] = nil # so that nobody else does
    scope.spin do
      @hosts["#{url.host}:#{url.port}"].hold do
        @turns.hold { links_of(url).each { |link| visit(scope, link) } }
      end
    end
  end

  def links_of(url)
    @most = [@most, @now += 1].max
    status, body = Ringspun::Machine.current.timeout(@within) { fetch(url) }
    @pages[url] = status
    status == 200 ? body.scan(LINK).flatten.filter_map { |link| same_site(url, link) } : []
  rescue Ringspun::TimeoutError
    give_up(url, "too slow")
  rescue Ringspun::Error, SystemCallError, SocketError => error
    give_up(url, error.class.name)
  ensure
    @now -= 1
  end

  def give_up(url, reason)
    @pages[url] = reason
    []
  end

  def fetch(url)
    Ringspun.connect_tcp(url.host, url.port) do |stream|
      stream.write("GET #{url.request_uri} HTTP/1.0\r\nHost: #{url.host}\r\n\r\n")
      status = Integer(stream.read_line[/\AHTTP\S+ (\d+)/, 1])
      nil until stream.read_line == ""
      body = +""
      stream.each_chunk { |chunk| (body << chunk).bytesize < PAGE_BYTES or break }
      [status, body]
    end
  end

  def same_site(url, link)
    found = url.merge(link)
    found if [found.scheme, found.host, found.port] == [url.scheme, url.host, url.port]
  rescue URI::Error
    nil
  end
end

# A site to crawl: what links to what.
SITE = {
  "/" => %w[/about /deep/1 /missing https://example.org/],
  "/about" => %w[/ team /slow],
  "/team" => %w[about],
  "/slow" => %w[/],
  "/deep/1" => %w[2 /],
  "/deep/2" => %w[3],
  "/deep/3" => %w[../ 1#top]
}.freeze

def serve_page(stream)
  path = stream.read_line.split[1]
  nil until stream.read_line == ""
  stream.peek(1) if path == "/slow" # nothing more comes, and so it waits until the client goes
  links = SITE[path] or return stream.write("HTTP/1.0 404 Not Found\r\n\r\n")
  stream.write("HTTP/1.0 200 OK\r\n\r\n", links.map { |link| "<a href=\"#{link}\">#{link}</a>\n" }.join)
end

def report(crawler)
  crawler.pages.sort_by { |url, _| url.path }.each { |url, status| puts format("%-8s %s", status, url.path) }
  broken = crawler.pages.values.count { |status| status != 200 }
  puts "#{crawler.pages.size} pages, #{broken} of them broken; at most #{crawler.most} requests at once"
end

Ringspun.run do
  if ARGV.empty?
    server = Ringspun.listen_tcp("127.0.0.1", 0) { |stream| serve_page(stream) }
    report(Crawler.new(within: 1).crawl("http://127.0.0.1:#{server.port}/"))
    server.stop
  else
    report(Crawler.new.crawl(ARGV.first))
  end
end
