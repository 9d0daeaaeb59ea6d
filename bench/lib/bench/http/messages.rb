# frozen_string_literal: true

require File.expand_path("../../../peers/http/app", __dir__)

module Bench
  module Http
    # What clients send and get, by the name of the work.
    module Messages
      # 8 fields such as a browser sends. Falcon would compress its answers for one.
      FIELDS = "Host: bench.example.org\r\n" \
               "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n" \
               "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n" \
               "Accept-Encoding: identity\r\nReferer: http://bench.example.org/\r\nConnection: keep-alive\r\n" \
               "Cookie: session=0123456789abcdef\r\n"

      # What Rails answers when all is well.
      UP = "<!DOCTYPE html><html><body style=\"background-color: green\"></body></html>"
      private_constant :FIELDS, :UP

      module_function

      # @return [String]
      def request(work)
        case work
        when "post"
          "POST / HTTP/1.1\r\n#{FIELDS}Content-Length: #{BenchApp::POSTED}\r\n\r\n#{"p" * BenchApp::POSTED}"
        when "events" then "GET / HTTP/1.1\r\n#{FIELDS.sub(/^Accept: .*?(?=\r)/, "Accept: text/event-stream")}\r\n"
        else "GET #{work == "up" ? "/up" : "/"} HTTP/1.1\r\n#{FIELDS}\r\n"
        end
      end

      # @return [String] the body of an answer, or one event of it
      def body(work)
        { "hello" => BenchApp::HELLO, "sleep" => BenchApp::HELLO, "events" => BenchApp::EVENT,
          "post" => BenchApp::POSTED.to_s, "file" => BenchApp.file_bytes, "up" => UP }.fetch(work)
      end
    end
  end
end
