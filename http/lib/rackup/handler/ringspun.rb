# frozen_string_literal: true

require "rackup/handler"
require "ringspun/http"
require "ringspun/http/command"

module Rackup
  module Handler
    # `rackup -s ringspun` and `bin/rails server -u ringspun`: one process, with a strand for each connection, or as many as
    # `-O workers=N` or the configuration file say. INT, TERM and HUP let the requests end that there are, and the second one does
    # not. Under Rails, USR2 and `bin/rails restart` start it anew.
    #
    # @since 0.1.0
    module Ringspun
      class << self
        # Serves until {shutdown}, or until a signal ends the program.
        #
        # With no more than a host and a port it may run on any thread, and beside others. With other options, a configuration
        # file or sockets that were handed in it is for the main thread, outside of {::Ringspun.run}.
        #
        # @param app [#call] a program for Rack
        # @param options [Hash{Symbol => Object}] `:Host`, `:Port` and `:quiet`, as rackup has them; `:restart_cmd` and
        #   `:early_hints`, as Rails has them; the words of the configuration file, with their values or as texts; and
        #   `:configuration`, its path
        # @yieldparam server [Ringspun::Server] once it listens, unless there are workers
        # @return [nil]
        # @raise [SystemCallError, SocketError]
        # @raise [Ringspun::UsageError] an option is wrong, or a Rails application keeps the state of a request by thread
        # @raise [SystemExit] something had to be cut, and more than a host and a port was said
        # @since 0.1.0
        def run(app, **options, &)
          @running = ::Ringspun::HTTP::Command.__send__(:under_rackup, app, options)
          @running.run(&)
        ensure
          @running = nil
        end

        # Ends {run}, when the requests that there are have been answered. A handler of a signal may call it.
        #
        # @return [nil]
        # @since 0.1.0
        def shutdown = @running ? @running.stop : exit

        # @return [Hash{String => String}] for `rackup --help`
        # @since 0.1.0
        def valid_options
          { "Host=HOST" => "an address or a name, localhost unless given", "Port=PORT" => "9292 unless given",
            **::Ringspun::HTTP::Command.__send__(:words_of_rackup) }
        end
      end
    end

    register :ringspun, Ringspun
  end
end
