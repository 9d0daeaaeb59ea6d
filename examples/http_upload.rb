# frozen_string_literal: true

# Takes files: PUT /NAME writes a body to the folder as it comes, so that a large one takes no memory, and answers its digest.
#
#   bin/bundle exec ruby examples/http_upload.rb               # shows three uploads at once
#   bin/bundle exec ruby examples/http_upload.rb 9292 FOLDER   # serves on that port; Ctrl-C ends it
#
# Prints:
#   PUT /zeros: 201 5000000 bytes, sha256 b3978158...
#   PUT /empty: 201 0 bytes, sha256 e3b0c442...
#   PUT /..%2Fpasswd: 400 a name has letters, digits, - and _

require "digest"
require "net/http"
require "ringspun/http"
require "tmpdir"

class Uploads
  TEXT = { "content-type" => "text/plain" }.freeze
  PIECE_BYTES = 65_536

  def initialize(folder)
    @folder = folder
  end

  def call(env)
    name = env["PATH_INFO"].delete_prefix("/")
    return [405, { **TEXT, "allow" => "PUT" }, ["only PUT"]] unless env["REQUEST_METHOD"] == "PUT"
    return [400, TEXT.dup, ["a name has letters, digits, - and _"]] unless name.match?(/\A[\w-]+\z/)

    bytes, digest = keep(env["rack.input"], File.join(@folder, name))
    [201, TEXT.dup, ["#{bytes} bytes, sha256 #{digest}"]]
  end

  private

  # A file gets its name when it is whole: a client that goes away raises here.
  def keep(input, path)
    digest = Digest::SHA256.new
    part = "#{path}.#{object_id}.#{digest.object_id}.part"
    bytes = File.open(part, "wb") { |file| copy(input, file, digest) }
    File.rename(part, path)
    [bytes, digest.hexdigest]
  ensure
    File.delete(part) if File.exist?(part)
  end

  def copy(input, file, digest)
    bytes = 0
    while (piece = input.read(PIECE_BYTES))
      digest << piece
      bytes += file.write(piece)
    end
    bytes
  end
end

def put(server, path, content)
  answer = Net::HTTP.start("127.0.0.1", server.port) do |http|
    http.send_request("PUT", path, content, "content-type" => "application/octet-stream")
  end
  "PUT #{path}: #{answer.code} #{answer.body}"
end

def show(machine, server)
  files = { "/zeros" => "\0" * 5_000_000, "/empty" => "", "/..%2Fpasswd" => "no" }
  puts(files.map { |path, content| machine.spin { put(server, path, content) } }.map(&:await))
  server.stop
end

def serve(folder)
  Ringspun.run do |machine|
    server = Ringspun::HTTP.listen(Uploads.new(folder), "127.0.0.1", Integer(ARGV.first || 0))
    ARGV.empty? ? show(machine, server) : server.wait
  end
end

ARGV.empty? ? Dir.mktmpdir { |folder| serve(folder) } : serve(ARGV.fetch(1))
