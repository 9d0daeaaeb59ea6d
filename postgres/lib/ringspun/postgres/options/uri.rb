# frozen_string_literal: true

module Ringspun
  module Postgres
    class Options
      # A URI taken apart: https://www.postgresql.org/docs/17/libpq-connect.html#LIBPQ-CONNSTRING-URIS
      # Not with Ruby's own: that takes a list of hosts and an encoded path for none.
      #
      # What is wrong is not shown, for there may be a password in it. One with a / in it would end there, and what comes behind
      # would be the database: so an @ in that is encoded, and a port has digits only.
      #
      # @api private
      module Uri
        WHOLE = %r{\Apostgres(?:ql)?://(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<places>[^/?]*)(?:/(?<dbname>[^?@]*))?
                   (?:\?(?<options>.*))?\z}mx
        PLACE = /\A(?<host>\[[^\[\]@]*\]|[^:\[\]@]*)(?::(?<port>\d*))?\z/
        FORM = "postgres://user:password@host:port/database?option=value, with what is not a letter or digit as %20"
        private_constant :WHOLE, :PLACE, :FORM

        class << self
          # @param source [String, nil]
          # @return [Hash{String => String}]
          # @raise [UsageError]
          def read(source)
            return {} if source.nil?

            found = WHOLE.match(text_of(source)) or fail_form
            parts = %w[user password dbname].to_h { |name| [name, found[name]] }.reject { |_, text| text.to_s.empty? }
            parts.transform_values { |text| decode(text) }.merge(places(found[:places]), options(found[:options].to_s))
          end

          private

          def text_of(source)
            text = String.try_convert(source)&.dup&.force_encoding(Encoding::UTF_8)
            text&.valid_encoding? ? text : fail_form
          end

          def places(text)
            return {} if text.empty?

            pairs = text.split(",", -1).map { |place| PLACE.match(place) || fail_form }
            hosts = pairs.map { |pair| decode(pair[:host].delete("[]")) }
            { "host" => hosts, "port" => pairs.map { |pair| pair[:port].to_s } }.transform_values { |all| all.join(",") }
                                                                                .reject { |_, all| all.delete(",").empty? }
          end

          def options(text)
            text.split("&", -1).reject(&:empty?).to_h do |option|
              name, value, more = option.split("=", -1).map { |part| decode(part) }
              fail_form unless name.match?(/\A\w+\z/) && (value || Keywords::ALL.key?(name))
              raise UsageError, "the URI's option #{name}: expected #{name}=value" if value.nil? || more

              name == "ssl" && value == "true" ? %w[sslmode require] : [name, value] # as JDBC has it, and libpq takes
            end
          end

          # Not as a form has it: a plus is a plus.
          def decode(text)
            fail_form if text.match?(/%(?!\h\h)/)
            text.b.gsub(/%(\h\h)/) { Regexp.last_match(1).hex.chr }.force_encoding(Encoding::UTF_8)
          end

          def fail_form = raise(UsageError, "that is no URI of Postgres; it is like #{FORM}")
        end
      end
      private_constant :Uri
    end
  end
end
