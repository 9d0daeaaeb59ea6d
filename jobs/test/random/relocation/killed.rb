# frozen_string_literal: true

require "delegate"

# Two storages, and a process that uses both and is killed before or after one of its calls: from then on nothing it does is done.
class KilledCalls
  # Ends the process: nobody rescues it.
  class Kill < Exception; end # rubocop:disable Lint/InheritException

  # One of the two storages.
  class Side < SimpleDelegator
    def initialize(storage, calls)
      super(storage)
      @calls = calls
    end

    Ringspun::Jobs::Storage.public_instance_methods(false).each do |verb|
      define_method(verb) do |*arguments, **options, &block|
        @calls.call { __getobj__.public_send(verb, *arguments, **options, &block) }.tap do
          @calls.node = arguments.first if verb == :fetch
        end
      end
    end
  end

  # The node that has fetched last.
  attr_accessor :node

  # @param after [Integer, nil] how many calls it lives; nil: all
  # @param told [Boolean] whether the last call is done as well
  def initialize(after = nil, told: false)
    @left = after
    @told = told
    @count = 0
  end

  attr_reader :count

  def side(storage) = Side.new(storage, self)

  def call
    @count += 1
    return yield unless @left
    raise Kill if @left.negative? || (@left.zero? && !@told)

    answer = yield
    raise Kill if (@left -= 1).negative?

    answer
  end
end
