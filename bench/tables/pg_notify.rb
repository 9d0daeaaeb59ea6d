# frozen_string_literal: true

require "bench/postgres_server"

# `start` runs a block beside the others, `finish` awaits its value.
by_connections = lambda do |meter, subscribers, notifications, start, finish|
  server = Bench::PostgresServer.start
  open = Array.new(subscribers) { PG.connect(**server.options) }
  open.each { |connection| connection.exec("LISTEN bench") }
  sender = PG.connect(**server.options)
  meter.operations = subscribers * notifications
  server.measure(meter) do
    started = open.map { |connection| start.call { notifications.times.count { connection.wait_for_notify } } }
    notifications.times { |number| sender.exec_params("select pg_notify('bench', $1)", [number.to_s]) }
    { received: started.sum(&finish) }
  end
ensure
  [sender, *open].compact.each(&:close)
end

Bench.table "pg_notify" do
  title "Postgres, NOTIFY to many"
  about "All subscribers get all notifications, which one sends, one after the other. Of `ringspun` all subscribers are " \
        "strands and share a connection; of the others each has its own, and listens before the measured region. A rate is " \
        "of notifications that have come to a subscriber."
  size notifications: 50
  quick notifications: 10
  warm_up notifications: 2, subscribers: 10
  row "100 subscribers", subscribers: 100
  row "1000 subscribers", subscribers: 1_000, quick: false
  beforehand { |**| Bench::PostgresServer.start }
  proof { |notifications:, subscribers:| { received: notifications * subscribers } }
  columns :real_ns, :cpu_ns, :backend_ns, :rate
  against_peer :real_ns, :cpu_ns

  # A strand for each subscription.
  contender "ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND] do |meter, notifications:, subscribers:|
    Bench::PostgresServer.client do |client, machine|
      subscriptions = Array.new(subscribers) { client.listen("bench") }
      client.notify("other") # connects
      meter.operations = subscribers * notifications
      Bench::PostgresServer.start.measure(meter) do
        strands = subscriptions.map { |one| machine.spin { notifications.times.count { one.pop } } }
        notifications.times { |number| client.notify("bench", number.to_s) }
        { received: machine.await(strands).sum }
      end
    end
  end

  # A thread for each connection.
  contender "threads", requires: "pg" do |meter, notifications:, subscribers:|
    by_connections.call(meter, subscribers, notifications, Thread.method(:new), :value)
  end

  # A task for each.
  contender "async", requires: "async" do |meter, notifications:, subscribers:|
    require "pg"
    Sync { |task| by_connections.call(meter, subscribers, notifications, task.method(:async), :wait) }
  end

  targets "rate >= 5 x threads at 1000 subscribers"
end
