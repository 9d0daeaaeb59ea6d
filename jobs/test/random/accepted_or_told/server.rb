# frozen_string_literal: true

module AcceptedOrTold
  # The Redis of the programs, in a state that they say, and what it has. Threads may use it at once.
  class Server
    # How each state begins and ends.
    STATES = {
      fine: [[], []],
      full: [[%w[CONFIG SET maxmemory 1]], [%w[CONFIG SET maxmemory 0]]],
      replica: [[%w[REPLICAOF 127.0.0.1 1]], [%w[REPLICAOF NO ONE]]],
      stale_replica: [[%w[CONFIG SET replica-serve-stale-data no], %w[REPLICAOF 127.0.0.1 1]],
                      [%w[REPLICAOF NO ONE], %w[CONFIG SET replica-serve-stale-data yes]]],
      without_replicas: [[%w[CONFIG SET min-replicas-to-write 1]], [%w[CONFIG SET min-replicas-to-write 0]]]
    }.freeze

    # @param path [String] of its socket
    # @return [String] of its socket
    attr_reader :path

    def initialize(path)
      @path = path
      @lock = Mutex.new
      @state = :fine
    end

    # @param state [Symbol]
    def become(state)
      @lock.synchronize do
        before, @state = @state, state
        [*STATES.fetch(before).last, *STATES.fetch(state).first].each { |command| call(*command) }
      end
    end

    # Begins anew, with a key of the wrong type.
    def clear(prefix)
      become(:fine)
      call("FLUSHALL")
      call("SET", "#{prefix}queue:#{Calls::SPOILT}", "no list")
    end

    # The end of what {#clear} has begun.
    def mend(prefix)
      become(:fine)
      call("DEL", "#{prefix}queue:#{Calls::SPOILT}")
    end

    # @return [Array<Hash>] the jobs, wherever they are
    def jobs = call("KEYS", "*").flat_map { |key| entries(key) }.grep(/"args":/).map { |entry| JSON.parse(entry) }

    def close = @client&.close

    private

    def entries(key)
      case call("TYPE", key)
      when "list" then call("LRANGE", key, 0, -1)
      when "zset" then call("ZRANGE", key, 0, -1)
      else []
      end
    end

    def call(*command)
      @client ||= RedisClient.new(path: @path, driver: :ruby, timeout: 20)
      @client.call(*command)
    end
  end
end
