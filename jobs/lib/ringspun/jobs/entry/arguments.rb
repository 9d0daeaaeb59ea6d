# frozen_string_literal: true

module Ringspun
  module Jobs
    # Checks that arguments survive JSON as they are. Every job that is enqueued goes through here.
    #
    # @api private
    module Arguments
      # Ruby's JSON reads 100 levels, of which the job and its arguments are two:
      # https://docs.ruby-lang.org/en/master/JSON.html (max_nesting)
      DEPTH_MAX = 98

      # Kinds of values, small numbers for a `case`.
      NUMBER_OR_NOTHING = 0
      STRING = 1
      FLOAT = 2
      ARRAY = 3
      HASH = 4
      KINDS = { Integer => NUMBER_OR_NOTHING, TrueClass => NUMBER_OR_NOTHING, FalseClass => NUMBER_OR_NOTHING,
                NilClass => NUMBER_OR_NOTHING, String => STRING, Float => FLOAT, Array => ARRAY, Hash => HASH }
              .compare_by_identity.freeze
      UTF_8 = Encoding::UTF_8
      private_constant :NUMBER_OR_NOTHING, :STRING, :FLOAT, :ARRAY, :HASH, :KINDS, :UTF_8

      module_function

      # @param arguments [Array]
      # @raise [InvalidJobError] which names the first place that does not survive
      def check(arguments)
        return if array?(arguments, 0)

        raise InvalidJobError, "the arguments must be an Array, got #{arguments.class}" unless arguments.is_a?(Array)

        complain(arguments, "args", 0)
      end

      # @param value [Object]
      # @param name [String] what it is, for errors
      # @return [String] its JSON text
      # @raise [InvalidJobError] which names the first place that does not survive
      def dump(value, name)
        value?(value, 0) ? JSON.generate(value) : complain(value, name, 0)
      end

      # The three methods that follow are written for speed: to check arguments takes less time than to generate their JSON.
      def array?(array, depth)
        return false if depth > DEPTH_MAX || array.class != Array

        index = 0
        size = array.size
        while index < size
          return false unless value?(array[index], depth)

          index += 1
        end
        true
      end

      def hash?(hash, depth)
        return false if depth > DEPTH_MAX || (hash.compare_by_identity? && key_twice(hash))

        hash.each_pair do |key, value|
          return false unless key.class == String && string?(key) && value?(value, depth)
        end
        true
      end

      def value?(value, depth)
        case KINDS[value.class]
        when 0 then true # literals, for which Ruby has a table
        when 1 then value.ascii_only? || (value.encoding == UTF_8 && value.valid_encoding?)
        when 2 then value.finite?
        when 3 then array?(value, depth + 1)
        when 4 then hash?(value, depth + 1)
        else false
        end
      end

      def string?(value) = value.ascii_only? || (value.encoding == UTF_8 && value.valid_encoding?)

      # @return [String, nil] a key that a Hash which compares by identity has twice, and JSON could have once
      def key_twice(hash) = hash.keys.tally.find { |_, count| count > 1 }&.first

      # --- finding out what is wrong ---

      def complain(value, path, depth)
        refuse(path, "is nested more deeply than #{DEPTH_MAX} times, or contains itself") if depth > DEPTH_MAX

        case KINDS[value.class]
        when STRING then complain_of_string(value, path)
        when FLOAT then refuse(path, "is #{value}, which JSON does not know") unless value.finite?
        when ARRAY then value.each_with_index { |each, index| complain(each, "#{path}[#{index}]", depth + 1) }
        when HASH then complain_of_hash(value, path, depth)
        when nil then refuse(path, "is #{kind_of(value)}#{hint(value)}")
        end
      end

      def complain_of_hash(hash, path, depth)
        if (key = key_twice(hash))
          refuse("#{path}[#{key.inspect}]", "is there twice; a Hash that compares by identity may have no keys that are equal")
        end
        hash.each do |key, value|
          place = "#{path}[#{key.inspect}]"
          unless key.instance_of?(String)
            refuse(place, "has a key that is #{kind_of(key)}; keys must be Strings")
          end

          complain_of_string(key, place)
          complain(value, place, depth + 1)
        end
      end

      def complain_of_string(string, path)
        return if string?(string)

        refuse(path, "is a String in #{string.encoding}; encode it as UTF-8, or bytes in Base64") if string.encoding != UTF_8
        refuse(path, "is no valid UTF-8; encode bytes in Base64")
      end

      def kind_of(value)
        name = value.class.name or return "of an anonymous class"
        "#{name.match?(/\A[AEIOU]/i) ? "an" : "a"} #{name}"
      end

      def hint(value)
        case value
        when Symbol then "; give the String #{value.name.inspect}"
        when Hash then "; give a plain Hash"
        when Array then "; give a plain Array"
        when String then "; give a plain String"
        when Time then "; give its seconds, or its text in ISO 8601"
        else "; give what JSON knows: Strings, numbers, true, false, nil, Arrays, and Hashes with Strings for keys"
        end
      end

      def refuse(path, reason)
        raise InvalidJobError, "#{path} #{reason}"
      end
      private_class_method :complain, :complain_of_hash, :complain_of_string, :kind_of, :hint, :refuse
    end
    private_constant :Arguments
  end
end
