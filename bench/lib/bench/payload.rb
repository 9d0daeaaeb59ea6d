# frozen_string_literal: true

module Bench
  # The bytes that group `group` sends. Each group has its own, so that bytes which reach the wrong reader show.
  # bench/floor/stream.c makes the same.
  def self.payload(group, bytes)
    Array.new(bytes) { |index| 33 + ((index * 7 + group) % 90) }.pack("C*")
  end
end
