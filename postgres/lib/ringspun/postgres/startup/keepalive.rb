# frozen_string_literal: true

require "socket"

module Ringspun
  module Postgres
    class Startup
      # By what a connection finds out that nobody is there any more: tcp(7).
      #
      # @api private
      module Keepalive
        TIMES = { "keepalives_idle" => Socket::TCP_KEEPIDLE, "keepalives_interval" => Socket::TCP_KEEPINTVL,
                  "keepalives_count" => Socket::TCP_KEEPCNT, "tcp_user_timeout" => Socket::TCP_USER_TIMEOUT }.freeze
        private_constant :TIMES

        # @param socket [Socket]
        # @param options [Options]
        def self.set(socket, options)
          socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_KEEPALIVE, options.flag?("keepalives", true))
          TIMES.each do |name, option|
            value = Integer(options[name] || "0")
            socket.setsockopt(Socket::IPPROTO_TCP, option, value) if value.positive? # 0: as the system has it
          end
        end
      end
      private_constant :Keepalive
    end
  end
end
