# frozen_string_literal: true

require "ipaddr"

module Ringspun
  module Postgres
    class Options
      # Where a server listens. `name` is that of the host, or the folder of a Unix socket; `address`, where there is one, is
      # connected to in place of the name.
      #
      # @api private
      Host = Data.define(:name, :address, :port) do
        # @return [Boolean]
        def unix? = name.start_with?("/", "@")

        # @return [String] of the socket, as the system has it: a NUL begins one that is no file
        def path = socket_file.sub(/\A@/, "\0")

        # @return [String]
        def to_s
          return socket_file if unix?

          name.include?(":") ? "[#{name}]:#{port}" : "#{name}:#{port}"
        end

        private

        def socket_file = "#{name.delete_suffix("/")}/.s.PGSQL.#{port}"
      end

      class Host
        # https://www.postgresql.org/docs/17/runtime-config-connection.html#GUC-PORT
        PORT = 5432
        # Where Debian and where PostgreSQL itself has its socket. What a file of passwords says of localhost is meant for these.
        FOLDERS = ["/var/run/postgresql", "/tmp"].freeze
        PATH_MAX = 107 # bytes: sun_path of unix(7), and a NUL

        class << self
          # @param options [Options]
          # @return [Array<Host>]
          # @raise [UsageError]
          def list(options)
            names, addresses, ports = %w[host hostaddr port].map { |name| options[name]&.split(",", -1) }
            count = (names || addresses || [nil]).size
            check_count("hostaddr", addresses, count)
            check_count("port", ports, count) unless ports&.one?
            Array.new(count) { |at| make(names&.at(at), addresses&.at(at), ports && (ports.one? ? ports.first : ports[at])) }
          end

          private

          def make(name, address, port)
            number = port_of(port)
            address = nil if address.to_s.empty?
            check_address(address) if address
            host = new(name: name.to_s.empty? ? address || default(number) : name, address:, port: number)
            check_path(host) if host.unix?
            host
          end

          def default(port)
            FOLDERS.find { |folder| File.socket?("#{folder}/.s.PGSQL.#{port}") } ||
              FOLDERS.find { |folder| File.directory?(folder) } || "localhost"
          end

          def port_of(text)
            return PORT if text.to_s.empty?

            number = text.match?(/\A\d+\z/) ? Integer(text, 10) : 0
            raise UsageError, "port: expected a number from 1 to 65535, got #{text.inspect}" unless number.between?(1, 65_535)

            number
          end

          def check_count(name, list, count)
            return if list.nil? || list.size == count

            raise UsageError, "#{name}: expected as many as there are hosts (#{count}), got #{list.size}"
          end

          def check_address(address)
            IPAddr.new(address.sub(/%.*/, "")) # the zone of an address that is local to a link
          rescue IPAddr::Error
            raise UsageError, "hostaddr: expected an address of IPv4 or IPv6, got #{address.inspect}; a name is for host"
          end

          def check_path(host)
            return if host.path.bytesize <= PATH_MAX

            raise UsageError, "host: the path of the socket may have #{PATH_MAX} bytes, got #{host}"
          end
        end
      end
      private_constant :Host
    end
  end
end
