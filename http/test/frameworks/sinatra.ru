# frozen_string_literal: true

# Sinatra, as its users write it.

require "sinatra/base"

class Shop < Sinatra::Base
  set :environment, :production
  get("/hello/:name") { sleep(0.01) && "hello, #{params[:name]}" }
  post("/echo") { request.body.read }
  get("/stream") { stream { |out| 3.times { |number| out << "#{number} " } } }
end
run Shop
