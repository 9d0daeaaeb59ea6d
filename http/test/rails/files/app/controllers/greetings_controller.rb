# frozen_string_literal: true

class GreetingsController < ApplicationController
  def show = render(plain: Greeting.text)

  # The class is the same before and after, although its file has changed. Tells the test how many requests wait for that.
  def slow
    before = Greeting
    gate = ObjectSpace.each_object(Ringspun::HTTP.const_get(:Frameworks).const_get(:Reloading)).first
    Crowd.wait { gate.instance_variable_get(:@change).waiting }
    render(plain: "#{before.equal?(Greeting)} #{Greeting.text}")
  end

  def hints
    request.send_early_hints("link" => "</a.css>; rel=preload")
    show
  end

  def boom = raise("as told")
end
