# frozen_string_literal: true

require_relative "child"

module Ringspun
  module Jobs
    # Runs jobs in a child process that is forked for them. A job that ends its process takes only the other jobs of that child
    # with it, and the caller sees which have not ended.
    #
    #   group = quarantine.group(members) { |member| perform(member) }
    #   ending = group.run { |member, value| puts "#{member} has ended" }
    #   puts "the child has ended: #{ending.fate}"
    #
    # The child has the program as it was loaded, and a machine of its own, with a strand for each job. It must not use the
    # parent's connections, so the block makes its own. The block's value has to survive Marshal; {portable} turns an error into
    # a value that does.
    #
    # The child ends with its parent. When the strand that waits for the child is cancelled, the child gets a TERM, which cancels
    # its jobs so that their `ensure` blocks run, and some seconds later a KILL.
    #
    # @since 0.1.0
    class Quarantine
      # Seconds for `ensure` blocks.
      GRACE = 5
      private_constant :GRACE

      # An error on its way to another process. It arrives as itself, or, if that process has not loaded its class, as one that
      # looks like it.
      Carried = Struct.new(:error) do
        def self._load(bytes)
          error, like = Marshal.load(bytes) # rubocop:disable Security/MarshalLoad -- our own process wrote it
          Marshal.load(error) # rubocop:disable Security/MarshalLoad
        rescue StandardError, LoadError
          like
        end

        def _dump(_level) = Marshal.dump([Marshal.dump(error), Quarantine.like(error)])
      end
      private_constant :Carried

      # Makes an error fit for another process: the error itself, or, if Marshal cannot dump it, one that looks like it.
      #
      # @param error [Exception]
      # @return [Object] which Marshal loads as an Exception
      # @since 0.1.0
      def self.portable(error)
        Marshal.load(Marshal.dump(error))
        Carried.new(error)
      rescue StandardError
        like(error)
      end

      # @param error [Exception]
      # @return [RuntimeError]
      # @since 0.1.0
      def self.like(error)
        text = error.message rescue "its message raises"
        RuntimeError.new("#{error.class}: #{text}").tap { |other| other.set_backtrace(error.backtrace) }
      end

      # @param log [Log, nil] which the child writes to as well
      # @param grace [Numeric] seconds between TERM and KILL
      # @param processes [Integer] how many processes of this program share the computer's cores and memory
      # @since 0.1.0
      def initialize(log: nil, grace: GRACE, processes: 1)
        @log = log
        @grace = Seconds.limit("grace", grace, "a number of seconds")
        @capacity = Capacity.new(processes)
      end

      # Makes a group of jobs that share a child.
      #
      # @param members [Array<#ask>] one for each job; in the child, `ask` is called with the reason for a cancellation, see
      #   {Group#cancel}
      # @param title [String] what `ps` shows of the child
      # @param quiet [#call, nil] called in the child for {Group#quiet}, by who takes orders: it must neither wait nor raise
      # @param settled [#call, nil] called when {Group#settled?} has become true; it must neither wait nor raise
      # @yieldparam member [Object] in the child, in a strand of its own
      # @return [Group]
      # @since 0.1.0
      def group(members, title: Words.count(members.size, "job"), quiet: nil, settled: nil, &block)
        Group.new(members, title:, quiet:, settled:, log: @log, grace: @grace, &block)
      end

      # @param used [Integer] how many children there are
      # @return [Integer] how many the computer's memory and cores allow; 2 or more
      # @since 0.1.0
      def places(used) = @capacity.places(used)

      # @return [Integer] how many children may be young at once, so that each has a core to begin with
      # @since 0.1.0
      def places_for_young = @capacity.cores
    end
  end
end

require_relative "quarantine/capacity"
require_relative "quarantine/group"
