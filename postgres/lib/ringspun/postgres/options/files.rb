# frozen_string_literal: true

require "etc"

module Ringspun
  module Postgres
    class Options
      # What a user has in files: services, and passwords.
      #
      # @api private
      class Files
        # Those that `pg_config --sysconfdir` names on Debian, on Fedora, and where it was built from its sources.
        SYSTEM_FOLDERS = ["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/usr/local/pgsql/etc"].freeze
        FIELD = /((?:\\.|[^:\\])*):/n
        LINE = /\A(?!#)#{FIELD}#{FIELD}#{FIELD}#{FIELD}(.*)\z/n
        private_constant :SYSTEM_FOLDERS, :FIELD, :LINE

        def initialize(env)
          @env = env
        end

        # @return [String, nil] the path in the user's own folder
        def in_home(name) = home && File.join(home, name)

        # https://www.postgresql.org/docs/17/libpq-pgservice.html
        #
        # @param file [String, nil] the user's, where it is not ~/.pg_service.conf
        # @return [Hash{String => String}]
        # @raise [UsageError] there is no such service
        def service(name, file)
          raise UsageError, "servicefile: #{file} is not there" if file && !File.file?(file)

          files = [file || in_home(".pg_service.conf"), *system_folders.map { |folder| File.join(folder, "pg_service.conf") }]
          files = files.select { |path| path && File.file?(path) }
          files.each { |path| read_service(path, name)&.then { |found| return found } }
          raise UsageError, "service: there is no [#{name}] in #{files.empty? ? "any file" : files.join(", ")}"
        end

        # https://www.postgresql.org/docs/17/libpq-pgpass.html
        #
        # @return [String, nil]
        def password(options, host)
          file = options["passfile"] || in_home(".pgpass")
          return unless file && File.file?(file) && private?(file)

          wanted = [host_in_file(host), host.port.to_s, options.database, options.user].map(&:b)
          File.foreach(file, mode: "rb", chomp: true) do |line|
            *fields, password = fields_of(line.delete_suffix("\r"))
            return password if password && fields.zip(wanted).all? { |field, value| ["*", value].include?(field) }
          end
          nil
        end

        private

        def home = @env["HOME"] || Etc.getpwuid&.dir

        def system_folders = @env["PGSYSCONFDIR"] ? [@env["PGSYSCONFDIR"]] : SYSTEM_FOLDERS

        def read_service(file, name)
          found = nil
          File.foreach(file, chomp: true).with_index(1) do |line, number|
            text = line.strip
            next if text.empty? || text.start_with?("#")

            if text.start_with?("[") then found ? break : (found = {} if text == "[#{name}]")
            elsif found then found.store(*setting(text, "#{file}:#{number}"))
            end
          end
          found
        end

        def setting(text, where)
          key, value = text.split("=", 2)
          raise UsageError, "#{where}: expected option=value" unless value
          raise UsageError, "#{where}: a service cannot name a service" if key.start_with?("service")

          [key.strip, value.strip]
        end

        # As libpq: what others can read is no secret, and is not used.
        def private?(file)
          return true unless File.stat(file).mode.anybits?(0o077)

          Warnings.tell("Ringspun::Postgres: #{file} is not used, because its group or all may read it; chmod 0600 it")
          false
        end

        def host_in_file(host) = Host::FOLDERS.include?(host.name) ? "localhost" : host.name

        # Five, the last of which is the password and may have colons. A backslash takes a colon or itself for what it is.
        def fields_of(line)
          line.match(LINE)&.captures.to_a.map { |field| field.gsub(/\\(.)/n, '\1') }
        end
      end
      private_constant :Files
    end
  end
end
