# frozen_string_literal: true

# What tests need that spin strands.
module Strands
  def machine = Ringspun.machine
  def in_scope(**options, &) = machine.scope(**options, &)
end
