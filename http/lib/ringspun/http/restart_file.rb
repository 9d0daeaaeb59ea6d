# frozen_string_literal: true

module Ringspun
  module HTTP
    # The file that `bin/rails restart` touches.
    #
    # @api private
    module RestartFile
      PATH = "tmp/restart.txt"
      private_constant :PATH

      # Calls the block once it is touched, from now on.
      #
      # May switch strands.
      #
      # @param machine [Machine]
      # @param errors [#puts] is told when nobody can look
      # @return [Strand, nil] nil: nobody looks
      def self.watch(machine, errors)
        return unless File.directory?(File.dirname(PATH))

        watch = ::Ringspun.watch(File.dirname(PATH), :attributes, :created, :modified)
        strand = machine.spin do
          watch.each { |event| break yield if event.name == File.basename(PATH) }
        ensure
          watch.close
        end
      rescue LimitError, SystemCallError => error # the system has no watch left
        Telling.new(errors).puts("nobody looks at #{PATH}; use USR2 in its place: #{error.message}")
        nil
      ensure
        watch&.close unless strand
      end
    end
    private_constant :RestartFile
  end
end
