# frozen_string_literal: true

module Ringspun
  module Jobs
    class CLI
      # Serves the web pages.
      #
      # @api private
      class Pages < Command
        HOST = "127.0.0.1"
        # The port of `rackup`, where nothing else was asked for: https://github.com/rack/rackup
        PORT = 9292

        command "web", "serves web pages on which to see jobs and steer them, at 127.0.0.1 and port 9292", :bind, :port

        def call(names)
          none(names)
          require_relative "../../web"
          port = @options.fetch(:port, PORT)
          refuse("the port must be from 0 to 65535, got #{port}") unless (0..65_535).cover?(port)

          Web.serve(@storage, @options.fetch(:bind, HOST), port) { |url| ready(url) }
          SUCCESS
        rescue SystemCallError, SocketError => error
          @errors.puts "ringspun-jobs: it cannot listen there: #{error.message}"
          FAILURE
        end

        private

        def ready(url)
          say "the pages are at #{url}"
          @output.flush
        end
      end
      private_constant :Pages
    end
  end
end
