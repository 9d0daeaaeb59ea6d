# frozen_string_literal: true

module Ringspun
  module Jobs
    class Config
      # @!attribute [rw] storage
      #   @return [Symbol, Hash{Symbol => Object}, Storage] where jobs are kept: the name of a kind of storage, such as :memory; a
      #     Hash of its name: and options; or a storage that the program has made. Set to nil, the kind that was registered first.
      #     See {Storage.register}
      #   @since 0.1.0
      setting(:storage, Storage.default, "a storage",
              option: ["--storage NAME", "where jobs are kept, such as memory"]) do |value|
        Storage.known(value)
      end
    end
  end
end
