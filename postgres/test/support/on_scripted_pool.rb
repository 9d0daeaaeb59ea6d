# frozen_string_literal: true

require_relative "scripted_server"

# A pool and a scripted server on a machine without faults whose clock jumps.
module OnScriptedPool
  def server_class = ScriptedServer

  # Options are the pool's.
  def on_pool(**)
    Ringspun::Simulation.run(faults: false) do |machine|
      server = server_class.new(machine, Random.new(1), patience: 0.001)
      pool = Ringspun::Postgres::Pool.new(ScriptedServer::URL, **)
      yield pool, machine, server
    ensure
      pool.close
      server.close
    end
  end

  # @return [Object] the strand's value, or what has ended it
  def outcome_of(strand)
    strand.await
  rescue Exception => error
    error
  end
end
