# frozen_string_literal: true

# Hanami in one file: its routes, without actions.

require "hanami"

module Shop
  class App < Hanami::App
    config.root = __dir__
    config.logger.stream = File::NULL
    config.actions.format :txt
  end

  class Routes < Hanami::Routes
    hello = ->(env) { sleep(0.01) && [200, {}, ["hello, #{env["router.params"][:name]}"]] }
    get "/hello/:name", to: hello
    post "/echo", to: ->(env) { [200, {}, [env["rack.input"].read]] }
    get "/stream", to: ->(_env) { [200, {}, Enumerator.new { |out| 3.times { |number| out << "#{number} " } }] }
  end
end
Hanami.boot
run Hanami.app
