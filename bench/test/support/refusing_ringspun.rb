# frozen_string_literal: true

module Ringspun
  class Error < StandardError; end

  # Knows what it was given, and takes epoll only.
  class Machine
    singleton_class.attr_reader :given

    def self.new(**given)
      raise Error, "no uring here" if given[:backend] == :uring

      @given = given
    end
  end
end
