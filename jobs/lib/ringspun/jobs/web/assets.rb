# frozen_string_literal: true

require "digest"

module Ringspun
  module Jobs
    class Web
      # The files that pages need. They are read once, and found by their whole name, so that no path leads elsewhere. The
      # name has a digest of what is in the file: browsers may keep it for ever.
      #
      # @api private
      module Assets
        FOLDER = File.join(__dir__, "static")
        TYPES = { "css" => "text/css; charset=utf-8", "js" => "text/javascript; charset=utf-8" }.freeze
        FOR_EVER = "public, max-age=31536000, immutable"

        FILES = Dir.children(FOLDER).sort.to_h do |name|
          text = File.read(File.join(FOLDER, name)).freeze
          base, ending = name.split(".")
          ["/static/#{base}-#{Digest::SHA256.hexdigest(text)[0, 16]}.#{ending}", [TYPES.fetch(ending), text]]
        end.freeze

        # @param ending [String]
        # @return [String] the path of the file
        def self.path(ending) = FILES.each_key.find { |path| path.end_with?(".#{ending}") }

        # @return [Array(Integer, Hash, Array<String>), nil]
        def self.answer(path)
          type, text = FILES[path]
          type && [200, { "content-type" => type, "cache-control" => FOR_EVER, "content-length" => text.bytesize.to_s }, [text]]
        end
      end
      private_constant :Assets
    end
  end
end
