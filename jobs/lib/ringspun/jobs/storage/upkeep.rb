# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      # The version of the tables of a storage. `there`: of those that it has, 0 if it has none yet; `known`: the last one that
      # this program knows, which it makes; `oldest`: programs that know an earlier one cannot use what is there.
      Version = Struct.new(:there, :known, :oldest)

      # @!group Upkeep

      # Changes nothing, and can be asked where the version is none that this program could use.
      #
      # @return [Version, nil] nil: this storage has no tables
      # @raise [StorageError] what is there is not a storage of jobs
      # @since 0.1.0
      def version(connection: nil) = missing(:version)

      # Brings the tables to the version that this program knows. The first call of any other verb does so as well. And counts
      # anew what {#stats} tells of queues and sets.
      #
      # @return [Integer] how many versions later they are; 0: there was nothing to do
      # @raise [StorageError] they have a version that this program cannot use
      # @raise [UnknownOutcomeError] call it again
      # @since 0.1.0
      def migrate(connection: nil) = missing(:migrate)

      # Looks whether all is as it must be: that the storage can be read, and that each job is in one place. Looks at all that is
      # stored, so that it may take long; others read and write meanwhile.
      #
      # @return [Array<String>] what is wrong, with what to do about it
      # @since 0.1.0
      def check(connection: nil) = missing(:check)

      # @!endgroup
    end
  end
end
