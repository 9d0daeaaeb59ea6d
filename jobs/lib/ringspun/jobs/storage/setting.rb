# frozen_string_literal: true

module Ringspun
  module Jobs
    class Config
      # @!attribute [rw] storage
      #   @return [Symbol, Hash{Symbol => Object}, Storage, nil] where jobs are kept: the name of a kind of storage, such as
      #     :memory; the name, a colon and the path of a file, for a kind that has one; a Hash of a name: and options; or a
      #     storage that the program has made. A relative path is one in the program's folder. nil, as it is unless set: see
      #     {Storage.for}
      #   @since 0.1.0
      setting(:storage, nil, "a storage", option: ["--storage NAME", "where jobs are kept: #{Storage.forms}"]) do |value|
        value.nil? ? Unset : Storage.known(value)
      end
    end
  end
end
