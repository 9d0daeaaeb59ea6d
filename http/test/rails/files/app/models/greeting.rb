# frozen_string_literal: true

class Greeting
  def self.text = "one"
end
