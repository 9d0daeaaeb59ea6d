# frozen_string_literal: true

require "ringspun"

Kernel.include(Ringspun::KernelMethods)
# In front of IO's own methods, because of #close.
IO.prepend(Ringspun::IOMethods)
