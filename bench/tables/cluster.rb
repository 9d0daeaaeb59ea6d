# frozen_string_literal: true

require "bench/web_servers"

serve = lambda do |meter, program, requests:, processes:, backend: nil|
  next if requests.zero? # a server is a program of its own, which answers some requests before the region

  meter.operations = requests
  Bench::WebServers.during(meter, program, processes, backend:) do |server|
    server.ask(processes * 4, processes * 20)
    { answered: meter.measure { server.ask(processes * 4, requests) } }
  end
end

Bench.table "cluster" do
  title "Servers in processes"
  about "A web server of several processes, one for each core, which compute for a millisecond for each answer. For each " \
        "process there are four clients, threads of the bench on the same cores, which make a new connection for each request. " \
        "The floor is as many bare processes, which compute without being asked."
  size requests: 2_000 * Bench::Computing::PROCESSES.last, processes: Bench::Computing::PROCESSES.last
  quick requests: 250 * Bench::Computing::PROCESSES.last
  warm_up requests: 0
  scale("processes", :processes, *Bench::Computing::PROCESSES) { |processes| { requests: 2_000 * processes } }
  proof { |requests:, **| { answered: requests } }
  columns :real_ns, :rate
  against_floor :real_ns
  against_peer :real_ns

  # Processes of stock Ruby, of which each accepts a connection and answers it, one after the other.
  contender("prefork") { |meter, **size| serve.call(meter, :prefork, **size) }

  # Four threads in each process.
  contender("puma", requires: "puma") { |meter, **size| serve.call(meter, :puma, **size) }

  # A strand for each connection.
  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, **size|
      serve.call(meter, :ringspun, **size, backend:)
    end
  end

  bare "bare processes" do |meter, requests:, processes:|
    next if requests.zero?

    Bench::Computing.in_processes(meter, requests, processes)
    { answered: requests }
  end

  targets "real_ns <= 1.25 x floor", "real_ns <= 1.03 x best peer"
end
