# frozen_string_literal: true

# Roda, as its users write it.

require "roda"

class Shop < Roda
  plugin :streaming
  route do |r|
    r.get("hello", String) { |name| sleep(0.01) && "hello, #{name}" }
    r.post("echo") { r.body.read }
    r.get("stream") { stream { |out| 3.times { |number| out << "#{number} " } } }
  end
end
run Shop.freeze.app
