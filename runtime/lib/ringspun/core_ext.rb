# frozen_string_literal: true

require "ringspun"

Kernel.include(Ringspun::KernelMethods)
# Prepended, because IOMethods overrides IO#close and IO#pwrite.
IO.prepend(Ringspun::IOMethods)
